"""Frames of server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from headgate.admin import streams


class Lines:
    """A watch that gives these lines; None: wait until `go`."""

    def __init__(self, *lines: bytes | None) -> None:
        self.go = asyncio.Event()
        self.closed = 0
        self._lines = lines

    async def lines(self) -> AsyncIterator[bytes]:
        for line in self._lines:
            if line is None:
                await self.go.wait()
            else:
                yield line

    def close(self) -> None:
        self.closed += 1


def test_lines_become_frames_and_the_watch_is_closed_behind_them() -> None:
    async def main() -> None:
        watch = Lines(b'{"a":1}', b'{"b":2}')
        assert [piece async for piece in streams.events(watch)] == [
            b": ready\n\n", b'data: {"a":1}\n\n', b'data: {"b":2}\n\n',
        ]  # fmt: skip
        assert watch.closed == 1

    asyncio.run(main())


def test_silence_is_filled_with_comments_and_loses_nothing(monkeypatch) -> None:
    monkeypatch.setattr(streams, "KEEPALIVE_SECONDS", 0.01)

    async def main() -> None:
        watch = Lines(None, b"{}")
        found = streams.events(watch)
        assert await anext(found) == b": ready\n\n"
        for _ in range(3):
            assert await anext(found) == b": keepalive\n\n"
        watch.go.set()
        rest = [piece async for piece in found]
        assert [piece for piece in rest if piece != b": keepalive\n\n"] == [b"data: {}\n\n"]
        assert watch.closed == 1

    asyncio.run(main())


def test_a_client_that_leaves_closes_the_watch() -> None:
    async def main() -> None:
        watch = Lines(None)
        found = streams.events(watch)
        await anext(found)
        await found.aclose()
        assert watch.closed == 1

    asyncio.run(main())
