"""Custom functions of the configuration (`config.customFunctions`).

The syntax is `name(a, b) { <expression> }`; `#` starts a comment. Functions may call each other in any order, but no
function may call itself, directly or through others. If it is called as a method, `this` is the receiver. A last
parameter `...rest` is the list of all further arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from lark import Token, Tree

from headgate.expr.functions import GLOBAL_NAMES, METHOD_NAMES
from headgate.expr.grammar import RESERVED, SyntaxFault, parse

_HEAD: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*\(([^()]*)\)\s*\{")
# The parser reads `base64.encode(x)` as a method call on `base64`.
DOTTED_ENDS: Final = frozenset(name.rpartition(".")[2] for name in GLOBAL_NAMES if "." in name)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Definition:
    """One function: the names of its parameters and the tree of its body. `rest`: the parameter for further arguments.

    `line`: where it stands in the text.
    """

    parameters: tuple[str, ...]
    body: Tree[Token]
    rest: str = ""
    line: int = 0


CustomFunctions = dict[str, Definition]


def parse_functions(text: str) -> CustomFunctions:
    """Return the functions of a text, in their order. Raises ValueError with the line and the reason."""
    plain = "\n".join(_without_comment(line) for line in text.split("\n"))
    found: CustomFunctions = {}
    lines: dict[str, int] = {}
    at = 0
    while plain[at:].strip():
        line = plain[: at + len(plain[at:]) - len(plain[at:].lstrip())].count("\n") + 1
        head = _HEAD.match(plain, at)
        if head is None:
            raise ValueError(f"line {line}: expected name(parameters) {{ expression }}")
        name = head[1]
        stop = _end(plain, head.end())
        if stop < 0:
            raise ValueError(f"line {line}: the body of {name!r} does not end")
        if name in found or name in GLOBAL_NAMES or name in METHOD_NAMES or name in RESERVED:
            raise ValueError(f"line {line}: {name!r} is defined already")
        parameters, rest = _parameters(head[2])
        names = (*parameters, rest) if rest else parameters
        if len(set(names)) < len(names) or not all(_NAME.fullmatch(one) for one in names) or "this" in names:
            raise ValueError(f"line {line}: bad parameters of {name!r}")
        try:
            body = parse(plain[head.end() : stop])
        except SyntaxFault as error:
            raise ValueError(f"line {line}: in {name!r}: {error}") from None
        found[name] = Definition(parameters, body, rest, line)
        lines[name] = line
        at = stop + 1
    _check_calls(found, lines)
    return found


def _parameters(text: str) -> tuple[tuple[str, ...], str]:
    """Return the parameters of a head, and the one for further arguments, if there is one."""
    names = [one.strip() for one in text.split(",")] if text.strip() else []
    rest = names.pop() if names and names[-1].startswith("...") and names[-1] != "..." else ""
    return tuple(names), rest.removeprefix("...").strip()


def _check_calls(functions: CustomFunctions, lines: dict[str, int]) -> None:
    """Raise ValueError for a call of an unknown function, and for functions that call themselves."""
    called: dict[str, list[str]] = {}
    for name, definition in functions.items():
        called[name] = []
        for other, method in _calls(definition.body):
            known = METHOD_NAMES | DOTTED_ENDS if method else GLOBAL_NAMES
            if other in functions:
                called[name].append(other)
            elif other not in known:
                raise ValueError(f"line {lines[name]}: {name!r} calls {other!r}, which is not defined")
    done: set[str] = set()
    for name in functions:
        # A stack of its own: a chain of definitions may be longer than the interpreter's.
        path = [(name, iter(called[name]))] if name not in done else []
        open_names = {name}
        while path:
            callee = next(path[-1][1], None)
            if callee is None:
                finished, _ = path.pop()
                done.add(finished)
                open_names.discard(finished)
            elif callee in open_names:
                raise ValueError(f"line {lines[callee]}: {callee!r} calls itself")
            elif callee not in done:
                open_names.add(callee)
                path.append((callee, iter(called[callee])))


@lru_cache(maxsize=2)
def parsed_functions(text: str) -> CustomFunctions:
    """Return the cached functions of a text. Raises ValueError as parse_functions() does.

    The same text gives the same object, because caches use the identity of the object as a key.
    """
    return parse_functions(text) if text else {}


def _calls(body: Tree[Token]) -> list[tuple[str, bool]]:
    """Return pairs of the name of each call in a body and whether it is a method call."""
    places = (("ident_arg", 0, False), ("dot_ident_arg", 0, False), ("member_dot_arg", 1, True))
    return [(str(call.children[at]), method) for rule, at, method in places for call in body.find_data(rule)]


def _without_comment(line: str) -> str:
    quote, escaped = "", False
    for position, char in enumerate(line):
        if escaped:
            escaped = False
        elif quote:
            escaped = char == "\\"
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "#":
            return line[:position]
    return line


def _end(text: str, at: int) -> int:
    """Return the offset of the brace that closes a body, -1 if it is missing."""
    depth, quote = 1, ""
    while at < len(text):
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char in "\"'":
            quote = char
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return -1
