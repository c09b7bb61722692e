"""The queue between a request and its watcher."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

from headgate.trace import outlet
from headgate.trace.outlet import Outlet


def piped(test: Callable[[Outlet, int], Awaitable[None]]) -> None:
    async def main() -> None:
        reader, writer = os.pipe()
        found = Outlet(writer)
        try:
            async with asyncio.timeout(30):
                await test(found, reader)
        finally:
            found.close()

    asyncio.run(main())


async def read_all(reader: int) -> bytes:
    def read() -> bytes:
        with os.fdopen(reader, "rb") as file:
            return file.read()

    return await asyncio.to_thread(read)


def test_lines_arrive_in_order_and_an_empty_one_ends_them() -> None:
    async def test(found: Outlet, reader: int) -> None:
        found.write(b"one")
        found.write(b"two")
        found.end()
        assert not found.open
        found.write(b"late")
        assert await read_all(reader) == b"one\ntwo\n\n"

    piped(test)


def test_what_a_slow_reader_leaves_is_bounded_and_the_rest_dropped() -> None:
    async def test(found: Outlet, reader: int) -> None:
        line = b"x" * 10_000
        for _ in range(5000):
            found.write(line)
        assert found.dropped > 0
        kept = 5000 - found.dropped
        assert kept <= outlet.MAX_EVENTS + 65536 // len(line) + 1
        found.end()
        assert found.open, "what is queued is still to leave"
        data = await read_all(reader)
        assert data == (line + b"\n") * kept + b"\n"
        assert not found.open

    piped(test)


def test_bytes_are_bounded_too() -> None:
    async def test(found: Outlet, reader: int) -> None:
        for _ in range(100):
            found.write(b"x" * 1_000_000)
        assert found.dropped >= 100 - outlet.MAX_BYTES // 1_000_000 - 1
        os.close(reader)

    piped(test)


def test_a_reader_that_is_gone_closes_it() -> None:
    async def test(found: Outlet, reader: int) -> None:
        os.close(reader)
        found.write(b"x")
        assert not found.open
        found.write(b"y")
        found.end()

    piped(test)


def test_a_reader_that_stops_for_good_is_given_up(monkeypatch) -> None:
    monkeypatch.setattr(outlet, "LAST_SECONDS", 0.01)

    async def test(found: Outlet, reader: int) -> None:
        for _ in range(100):
            found.write(b"x" * 10_000)
        found.end()
        assert found.open
        while found.open:  # noqa: ASYNC110 - it has no event to wait for
            await asyncio.sleep(0.01)
        os.close(reader)

    piped(test)
