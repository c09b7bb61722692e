"""Messages waiting for a reader."""

from __future__ import annotations

import asyncio

from headgate.backend.mcp.targets.inbox import QUEUE, QUEUE_BYTES, Inbox


def drained(inbox: Inbox) -> list[bytes | None]:
    async def run() -> list[bytes | None]:
        return [await inbox.get() for _ in range(len(inbox))]

    return asyncio.run(run())


def test_messages_come_in_order_and_then_the_end() -> None:
    inbox = Inbox()
    assert inbox.put(b"a")
    assert inbox.put(b"b")
    inbox.finish(b"c")
    assert drained(inbox) == [b"a", b"b", b"c", None]


def test_only_so_many_wait_but_the_end_always_finds_room() -> None:
    inbox = Inbox()
    assert all(inbox.put(b"%d" % number) for number in range(QUEUE))
    assert not inbox.put(b"one too many")
    inbox.finish(b"answer")
    found = drained(inbox)
    assert found[:2] == [b"0", b"1"]
    assert found[-3:] == [b"%d" % (QUEUE - 1), b"answer", None]


def test_only_so_many_bytes_wait_but_one_message_may_have_any_length() -> None:
    inbox = Inbox()
    assert inbox.put(b"x" * (3 * QUEUE_BYTES))
    assert not inbox.put(b"y")
    assert drained(inbox) == [b"x" * (3 * QUEUE_BYTES)]
    assert inbox.put(b"y" * QUEUE_BYTES)
    assert not inbox.put(b"z")


def test_a_later_reader_takes_over_what_an_earlier_one_left() -> None:
    earlier, later = Inbox(), Inbox()
    earlier.put(b"a")
    earlier.put(b"b")
    later.take_over(earlier)
    later.put(b"c")
    assert drained(earlier) == [None]
    assert drained(later) == [b"a", b"b", b"c"]
