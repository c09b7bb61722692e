"""Ids of sessions at remote servers."""

from __future__ import annotations

from headgate.backend.mcp.front import MAX_SESSION_ID
from headgate.backend.mcp.states import SessionStates
from headgate.crypto.sealed import Sealer

KEY = bytes(32)
STATES = SessionStates(Sealer(KEY, "mcp links a"))


def test_what_is_sealed_comes_back_for_its_owner_alone() -> None:
    content: list[tuple[str, str | None]] = [("a", "s 1"), ("b", None)]
    for owner in ("", "ada"):
        found = STATES.seal(content, owner)
        assert STATES.open(found, owner) == dict(content)
        assert list(STATES.open(found, owner) or ()) == ["a", "b"]
        assert STATES.open(found, "bob") is None
        assert STATES.open(found, "" if owner else "ada") is None
        assert "s 1" not in found


def test_ids_differ_and_are_of_one_key_and_backend() -> None:
    found = STATES.seal([("a", None)], "")
    assert found != STATES.seal([("a", None)], "")
    assert SessionStates(Sealer(KEY, "mcp links b")).open(found, "") is None
    assert SessionStates(Sealer(b"k" * 32, "mcp links a")).open(found, "") is None
    for text in ("", "x", found[:-1], found + "A", "é"):
        assert STATES.open(text, "") is None


def test_an_id_of_128_targets_is_not_too_long() -> None:
    content = [(f"target-number-{index}", f"{index:032x}") for index in range(128)]
    found = STATES.seal([(name, value) for name, value in content], "ada")
    assert STATES.open(found, "ada") == dict(content)
    assert len(found) <= MAX_SESSION_ID
    assert all("!" <= letter <= "~" for letter in found)


def test_an_id_is_good_until_it_is_old() -> None:
    found = STATES.seal([("a", "s")], "", 1000)
    assert STATES.open(found, "", 1000) == {"a": "s"}
    assert STATES.open(found, "", 1000.5) is None
    before = STATES.seal([("a", "s")], "")
    assert STATES.open(before, "", 1e12) == {"a": "s"}, "of a version that noted no time"
