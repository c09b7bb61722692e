"""Agent cards on their way to clients."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.requests import rewritten_card
from headgate_engine.a2a.card import MAX_INTERFACES, CardError
from headgate_engine.a2a.place import AgentPlace

PLACE = AgentPlace("https", b"gate.test", b"/echo/.well-known/agent-card.json", b"/.well-known/agent-card.json")
OTHERS = st.dictionaries(
    st.text().filter(lambda name: name not in ("url", "supportedInterfaces", "additionalInterfaces", "signatures")),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)), max_size=4,
)  # fmt: skip


def changed(card: Any) -> Any:
    return json.loads(rewritten_card(json.dumps(card).encode(), PLACE)[0])


@pytest.mark.parametrize(("card", "expected"), [
    ({"url": "http://a/"}, {"url": "https://gate.test/echo"}),
    ({"url": "http://a/rpc"}, {"url": "https://gate.test/echo/rpc"}),
    ({"url": "http://a/", "additionalInterfaces": None}, {"url": "https://gate.test/echo", "additionalInterfaces": None}),
    (
        {"url": "http://a/", "additionalInterfaces": [{"url": "http://b/rest", "transport": "HTTP+JSON"}, {}, 7, {"url": 1}]},
        {"url": "https://gate.test/echo",
         "additionalInterfaces": [{"url": "https://gate.test/echo/rest", "transport": "HTTP+JSON"}, {}, 7, {"url": 1}]},
    ),
    ({"supportedInterfaces": []}, {"supportedInterfaces": []}),
    (
        {"supportedInterfaces": [{"url": "http://a/"}, {"name": "without", "deep": {"url": "http://kept/"}}], "x": {"url": "http://kept/"}},
        {"supportedInterfaces": [{"url": "https://gate.test/echo/"}, {"name": "without", "deep": {"url": "http://kept/"}}],
         "x": {"url": "http://kept/"}},
    ),
    # A card of both versions.
    (
        {"url": "http://a/rpc", "supportedInterfaces": [{"url": "http://a/rpc"}], "provider": {"url": "http://maker/"}},
        {"url": "https://gate.test/echo/rpc", "supportedInterfaces": [{"url": "https://gate.test/echo/rpc"}],
         "provider": {"url": "http://maker/"}},
    ),
])  # fmt: skip
def test_urls_are_replaced(card: Any, expected: Any) -> None:
    assert changed(card) == expected


def test_the_rest_stays_byte_for_byte() -> None:
    text = '{ "x" : [1.50, "\\u00e9"],\n\t"url":"http:\\/\\/a\\/rpc" , "supportedInterfaces" : [ {"a":1 , "url": "http://a/"} , 2 ]}'
    found, signatures = rewritten_card(text.encode(), PLACE)
    assert signatures == 0
    assert found.decode() == text.replace('"http:\\/\\/a\\/rpc"', '"https://gate.test/echo/rpc"').replace(
        '"http://a/"', '"https://gate.test/echo/"'
    )


def test_signatures_of_a_changed_card_go() -> None:
    signed = {"url": "http://a/", "signatures": [{"protected": "e30", "signature": "eA"}, {"protected": "e30", "signature": "eQ"}]}
    found, count = rewritten_card(json.dumps(signed).encode(), PLACE)
    assert (json.loads(found)["signatures"], count) == ([], 2)
    # One that leads to the gateway already is what was signed.
    signed["url"] = "https://gate.test/echo"
    text = json.dumps(signed).encode()
    assert rewritten_card(text, PLACE) == (text, 0)
    assert rewritten_card(b'{"url": "http://a/", "signatures": []}', PLACE)[1] == 0


@pytest.mark.parametrize(("text", "told"), [
    (b"", "not JSON"),
    (b"{", "not JSON"),
    (b"\xff", "not JSON"),
    (b"[]", "not a JSON object"),
    (b'"url"', "not a JSON object"),
    (b"{}", "neither"),
    (b'{"url": 7}', "neither"),
    (b'{"additionalInterfaces": []}', "neither"),
    (b'{"supportedInterfaces": {}}', "not a list"),
    (b'{"supportedInterfaces": null}', "not a list"),
    (b'{"url": "http://a/", "additionalInterfaces": "x"}', "not a list"),
    (b'{"url": "http://a/", "url": "http://b/"}', "twice"),
    (b'{"supportedInterfaces": [{"url": "http://a/", "url": "http://b/"}]}', "two URLs"),
    (b'{"supportedInterfaces": [{"url": "http://a/", "url": null}]}', "two URLs"),
    (b'{"supportedInterfaces": [' + b",".join([b"{}"] * (MAX_INTERFACES + 1)) + b"]}", "more than"),
])  # fmt: skip
def test_what_is_no_card(text: bytes, told: str) -> None:
    with pytest.raises(CardError, match=told):
        rewritten_card(text, PLACE)


@given(OTHERS, st.lists(st.text(max_size=10), max_size=3))
def test_nothing_else_changes(others: dict[str, Any], paths: list[str]) -> None:
    card = others | {"url": "http://a/", "supportedInterfaces": [{"url": f"http://agent.internal/{path}", "x": path} for path in paths]}
    found = changed(card)
    assert {name: value for name, value in found.items() if name in others} == others
    assert [one["x"] for one in found["supportedInterfaces"]] == paths
    assert all(one["url"].startswith("https://gate.test/echo") for one in found["supportedInterfaces"])
