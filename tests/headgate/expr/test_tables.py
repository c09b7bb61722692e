"""The computed tables of the parser."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.expr import tables
from headgate.expr.grammar import grammar_text

TEXTS = (
    "a || b && !c ? -1 : 2u + 3 * 4 % 5",
    'request.headers["a"].startsWith("b") && jwt.?sub.orValue("") in ["x", r"y",]',
    "{'a': [1.5, b'c'], ?'d': e[?f]}.all(k, k != null && true)  // end",
    "A{b: 1, c: `d-e`.f}",
)


def test_the_file_is_of_this_grammar() -> None:
    assert tables._stored(grammar_text()) is not None, "run: make tables"


@pytest.mark.parametrize("text", TEXTS)
def test_stored_tables_parse_as_computed_ones(text: str) -> None:
    stored, computed = tables.parser(grammar_text()), tables.build(grammar_text())
    try:
        wanted = computed.parse(text)
    except tables.lark.exceptions.UnexpectedInput as error:
        with pytest.raises(type(error)):
            stored.parse(text)
    else:
        assert stored.parse(text) == wanted


def test_tables_of_another_grammar_or_version_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = 'expr: "x"'
    assert str(tables.parser(other).parse("x").data) == "expr"
    monkeypatch.setattr(tables, "FILE", tmp_path / "tables.json")
    assert tables._stored(other) is None, "there is no file"
    tables.FILE.write_text(tables.page(other))
    assert tables._stored(other) is not None
    monkeypatch.setattr(tables.lark, "__version__", "0.0.0")
    assert tables._stored(other) is None
