"""What is kept of an event stream, and for whom."""

from __future__ import annotations

import pytest

from headgate.backend.mcp.replay import KEPT_BYTES, KEPT_MESSAGES, Replay


def test_what_came_after_an_event_is_given_again_with_its_ids() -> None:
    replay = Replay()
    ids = [replay.add(b"%d" % number) for number in range(5)]
    assert replay.after(ids[2]) == [(ids[3], b"3"), (ids[4], b"4")]
    assert replay.after(ids[4]) == []
    assert len(set(ids)) == 5


@pytest.mark.parametrize("event_id", [None, "", "x", "-", "-1", "other-1", "1"])
def test_ids_of_other_streams_bring_nothing(event_id: str | None) -> None:
    replay = Replay()
    known = replay.add(b"a").partition("-")[0]
    assert replay.after(event_id) == []
    for broken in (f"{known}-", f"{known}--1", f"{known}-x", f"{known}-\u0661", f"{known}-{'9' * 5000}"):
        assert replay.after(broken) == []
    assert Replay().after(f"{known}-0") == []
    assert [text for _, text in replay.after(f"{known}-0")] == [b"a"]


def test_streams_have_numbers() -> None:
    replay = Replay()
    first, second = replay.add(b"1"), replay.add(b"2", 1)
    rest = [replay.add(b"3", 1), replay.add(b"4")]
    assert (replay.after(first), replay.after(second)) == ([(rest[1], b"4")], [(rest[0], b"3")])
    assert [replay.stream_of(one) for one in (first, second, None, "x", f"{second}x", f"{first}.", "other-1.1")] == [0, 1, *[None] * 5]


def test_only_so_much_is_kept() -> None:
    replay = Replay()
    first = replay.add(b"first")
    for _ in range(2 * KEPT_MESSAGES):
        replay.add(b"x")
    assert len(replay.after(first)) == KEPT_MESSAGES
    replay.add(b"y" * (KEPT_BYTES + 1))
    assert replay.after(first) == []
    replay.add(b"z")
    assert [text for _, text in replay.after(first)] == [b"z"]
