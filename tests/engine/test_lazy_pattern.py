"""A lazy pattern does what re.compile's does, and is compiled when something asks for it."""

from __future__ import annotations

import re

import pytest

from headgate_engine.lazy_pattern import METHODS, lazy_pattern


def test_nothing_is_compiled_before_the_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    compile_now = re.compile

    def watched(text: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append((text, flags))
        return compile_now(text, flags)

    monkeypatch.setattr(re, "compile", watched)
    pattern = lazy_pattern("a+", re.IGNORECASE)
    assert compiled == []
    assert pattern.fullmatch("aA")
    assert pattern.match("ab")
    assert not pattern.fullmatch("ab")
    assert compiled == [("a+", re.IGNORECASE)], "once"


@pytest.mark.parametrize("name", METHODS)
def test_each_method_may_be_the_first(name: str) -> None:
    lazy, usual = lazy_pattern("(b)"), re.compile("(b)")
    if name == "pattern":
        assert lazy.pattern == usual.pattern
        return
    words = ("x", "abcb") if name == "sub" else ("abcb",)
    found, wanted = getattr(lazy, name)(*words), getattr(usual, name)(*words)
    if name in ("search", "finditer"):
        found, wanted = ([one.span() for one in (part if name == "finditer" else [part])] for part in (found, wanted))
    assert found == wanted
    assert lazy.sub("x", "abc") == "axc"


def test_bytes_and_bad_patterns() -> None:
    assert lazy_pattern(rb"\d").findall(b"a1") == [b"1"]
    with pytest.raises(re.error):
        lazy_pattern("(").match("x")
    assert not hasattr(lazy_pattern("a"), "no_such_method")
