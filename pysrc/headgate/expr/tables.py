"""The tables of the parser, computed ahead: to compute them takes 0.2 s, to read them 0.01 s.

`tables.json` holds them for one grammar and one version of lark. `make tables` writes it anew after a change of either;
until then, the parser is built from the grammar.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

import lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

FILE: Final = Path(__file__).with_name("tables.json")
OPTIONS: Final[dict[str, Any]] = {
    "start": "expr", "parser": "lalr", "propagate_positions": True, "maybe_placeholders": False,
}  # fmt: skip


def parser(grammar: str) -> lark.Lark:
    """Return the parser of a grammar, from the file if that is made for this grammar and this version of lark."""
    stored = _stored(grammar)
    return build(grammar) if stored is None else lark.Lark.load(stored)


def build(grammar: str) -> lark.Lark:
    """Return the parser of a grammar, with tables that are computed here."""
    return lark.Lark(grammar, **OPTIONS)


def identity(grammar: str) -> str:
    """Return what tables depend on, as hexadecimal digits."""
    return hashlib.sha256(f"{lark.__version__}\0{OPTIONS}\0{grammar}".encode()).hexdigest()


def page(grammar: str) -> str:
    """Return the content of the file."""
    data, memo = build(grammar).memo_serialize([TerminalDef, Rule])
    return json.dumps({"identity": identity(grammar), "data": data, "memo": memo}, separators=(",", ":")) + "\n"


def _stored(grammar: str) -> dict[str, Any] | None:
    """Return what lark has saved of the parser of a grammar; None if there is nothing or it is of another grammar."""
    try:
        found: dict[str, Any] = json.loads(FILE.read_bytes())
    except FileNotFoundError:
        return None
    if found.pop("identity") != identity(grammar):
        return None
    # The keys of JSON are texts, those of lark are numbers.
    found["memo"] = _numbered(found["memo"])
    tables = found["data"]["parser"]["parser"]
    tables["tokens"] = _numbered(tables["tokens"])
    tables["states"] = {int(state): _numbered(actions) for state, actions in tables["states"].items()}
    return found


def _numbered(values: dict[str, Any]) -> dict[int, Any]:
    return {int(key): value for key, value in values.items()}


if __name__ == "__main__":
    from headgate.expr.grammar import grammar_text

    print(page(grammar_text()), end="")
