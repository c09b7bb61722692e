"""An agent card that is taken has the same members as before and leads to the gateway with every URL, as the library of Python
reads both; what is refused is refused with a CardError."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz")]

from harness import corpus, mutated, run  # noqa: E402

from headgate_drivers.requests import rewritten_card  # noqa: E402
from headgate_engine.a2a.card import CardError  # noqa: E402
from headgate_engine.a2a.place import AgentPlace  # noqa: E402
from headgate_engine.peek.agent import CallPeek, OutcomePeek  # noqa: E402
from headgate_engine.peek.json import PeekError  # noqa: E402

PIECES = [
    b'"url"', b'"supportedInterfaces"', b'"additionalInterfaces"', b'"signatures"', b'"method"', b'"result"', b'"error"', b'"task"', b"null",
    b"[", b"]", b"{", b"}", b":", b",", b'"http://a/b?c#d"', b'"a:1"', b'"\\u0075rl"', b'"/x"', b"1", b'"\xc3\xa9"', b'"\\ud800"',
]  # fmt: skip
PLACE = AgentPlace("https", b"gate.test", b"/in/echo/.well-known/agent-card.json", b"/echo/.well-known/agent-card.json", (b"/in", b"/"))
LISTS = ("supportedInterfaces", "additionalInterfaces")


def urls(card: dict[str, Any]) -> list[str]:
    found = [card.get("url"), *(one.get("url") for name in LISTS for one in card.get(name) or () if isinstance(one, dict))]
    return [one for one in found if isinstance(one, str)]


def rest(card: dict[str, Any]) -> Any:
    """The card without what may change."""
    kept = {name: value for name, value in card.items() if name not in ("url", "signatures")}
    for name in LISTS:
        if isinstance(kept.get(name), list):
            kept[name] = [one | {"url": None} if isinstance(one, dict) and isinstance(one.get("url"), str) else one for one in kept[name]]
    return kept


def check(data: bytes, source: random.Random) -> None:
    """One input: as a card, as a call, and as an answer."""
    CallPeek().method(data, source.random() < 0.5)
    try:
        OutcomePeek().outcome(data, source.random() < 0.5, source.random() < 0.5)
    except PeekError:
        pass
    try:
        text, signatures = rewritten_card(data, PLACE)
    except CardError:
        return
    before, after = json.loads(data), json.loads(text)
    assert repr(rest(before)) == repr(rest(after)), (data, text)
    assert signatures == (len(before.get("signatures") or ()) if text != data and isinstance(before.get("signatures"), list) else 0)
    for one in urls(after):
        assert one.startswith("https://gate.test") or one == "gate.test:443", (data, one)


def make(source: random.Random) -> bytes:
    """An input of the corpus, spoilt."""
    return mutated(source.choice(CORPUS), PIECES, source)


CORPUS = corpus(__file__)

if __name__ == "__main__":
    run(__doc__, make, check, CORPUS)
