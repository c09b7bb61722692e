"""Method patterns: which one decides, and what is odd about some."""

from __future__ import annotations

import pytest

from headgate.dialect.mcp.method_keys import doubts, matches, most_specific


@pytest.mark.parametrize(
    ("keys", "method", "found"),
    [
        (("*", "tools/*", "*/call", "tools/call"), "tools/call", "tools/call"),
        (("*", "tools/*", "*/call"), "tools/call", "tools/*"),
        (("*", "t*", "*ools/call"), "tools/call", "t*"),
        (("*", "t*", "tools/*"), "tools/call", "tools/*"),
        (("*", "*call", "*/call"), "tools/call", "*/call"),
        (("*",), "anything", "*"),
        (("tools/*", "*/call"), "ping", None),
        (("", "a*b", "*a*", "**", "to*ls/call"), "tools/call", None),
        (("Tools/call",), "tools/call", None),
    ],
)
def test_the_most_specific_decides(keys: tuple[str, ...], method: str, found: str | None) -> None:
    assert most_specific(keys, method) == found
    assert most_specific(reversed(keys), method) == found


def test_a_pattern_is_not_an_expression() -> None:
    assert not matches("tools.call", "tools/call")
    assert matches("*", "")


@pytest.mark.parametrize(
    ("key", "phase", "words"),
    [
        ("a*b", "full", "can never match"),
        ("", "off", "can never match"),
        ("notifications/progress", "full", "is a notification"),
        ("tools/cal", "request", "not a method of the protocol"),
        ("completion/complete", "request", "has no request phase"),
        ("resources/subscribe", "full", "has no request phase"),
        ("completion/complete", "response", None),
        ("tools/cal", "off", None),
        ("tools/*", "full", None),
        ("subscriptions/listen", "full", None),
    ],
)
def test_doubts(key: str, phase: str, words: str | None) -> None:
    found = doubts(key, phase)
    assert (words is None) is (found is None)
    assert words is None or words in str(found)
