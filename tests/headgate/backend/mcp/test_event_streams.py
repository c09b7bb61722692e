"""Several event streams of one session: who gets the messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from headgate.backend.mcp.event_streams import MOST_STREAMS, EventStreams, Note
from headgate.backend.mcp.replay import Replay
from headgate.net.tasks import spawn

Use = Callable[["Session"], Coroutine[Any, Any, None]]


class Session:
    """`say()` puts a message where who listens finds it. `listening`: how many do; it may be one at a time."""

    def __init__(self) -> None:
        self.replay = Replay()
        self.streams = EventStreams(self.replay)
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.listening = 0
        self.clients: list[Client] = []

    def say(self, text: bytes | None) -> None:
        self.queue.put_nowait(text)

    async def open(self, last_id: str | None = None) -> Client:
        """Return a client whose turn it is."""
        found = Client(self, last_id)
        self.clients.append(found)
        await until(lambda: found.began)
        return found


class Client:
    """One connection: `seen` are ids and texts of its messages, `plain` what else was sent to it."""

    def __init__(self, session: Session, last_id: str | None) -> None:
        self.session = session
        self.seen: list[tuple[str, bytes]] = []
        self.plain: list[bytes] = []
        self.began = 0
        self.task = spawn("client", session.streams.serve(last_id, self.listen, self.send))

    async def send(self, data: bytes) -> None:
        self.plain.append(data)

    async def listen(self, note: Note) -> Coroutine[Any, Any, None]:
        self.began += 1
        return self.work(note)

    async def work(self, note: Note) -> None:
        session = self.session
        session.listening += 1
        assert session.listening == 1
        try:
            while (text := await session.queue.get()) is not None:
                self.seen.append((note(text), text))
        finally:
            session.listening -= 1

    @property
    def texts(self) -> list[bytes]:
        return [text for _, text in self.seen]

    async def leave(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for are steps of other tasks
            await asyncio.sleep(0)


def run(use: Use) -> None:
    async def whole() -> None:
        session = Session()
        await use(session)
        for client in session.clients:
            await client.leave()
        assert (len(session.streams), session.listening) == (0, 0)

    asyncio.run(whole())


def test_the_newest_gets_the_messages_and_the_one_before_goes_on() -> None:
    async def use(session: Session) -> None:
        first = await session.open()
        session.say(b"1")
        await until(lambda: first.texts == [b"1"])
        second = await session.open()
        third = await session.open()
        session.say(b"2")
        await until(lambda: third.texts == [b"2"])
        await second.leave()
        await third.leave()
        session.say(b"3")
        await until(lambda: first.texts == [b"1", b"3"])
        assert (second.texts, first.began, first.task.done()) == ([], 2, False)

    run(use)


def test_ids_are_of_streams() -> None:
    async def use(session: Session) -> None:
        first = await session.open()
        session.say(b"1")
        await until(lambda: first.seen)
        second = await session.open()
        for text in (b"2", b"3"):
            session.say(text)
        await until(lambda: len(second.seen) == 2)
        assert session.replay.after(first.seen[0][0]) == []
        assert session.replay.after(second.seen[0][0]) == [second.seen[1]]
        assert session.replay.stream_of(second.seen[0][0]) == 1

    run(use)


def test_who_comes_back_takes_the_place_of_the_connection_that_it_lost() -> None:
    async def use(session: Session) -> None:
        lost = await session.open()
        session.say(b"1")
        await until(lambda: lost.seen)
        other = await session.open()
        again = await session.open(lost.seen[0][0])
        assert await lost.task is True
        session.say(b"2")
        await until(lambda: again.texts == [b"2"])
        assert session.replay.stream_of(again.seen[0][0]) == 0
        assert (len(session.streams), other.task.done()) == (2, False)

    run(use)


def test_the_oldest_of_too_many_ends() -> None:
    async def use(session: Session) -> None:
        clients = [await session.open() for _ in range(MOST_STREAMS + 1)]
        assert await clients[0].task is True
        assert len(session.streams) == MOST_STREAMS
        assert not any(client.task.done() for client in clients[1:])

    run(use)


def test_all_end_with_the_session_and_with_what_is_listened_to() -> None:
    async def use(session: Session) -> None:
        clients = [await session.open() for _ in range(3)]
        session.streams.end()
        assert [await client.task for client in clients] == [True] * 3
        clients = [await session.open() for _ in range(2)]
        session.say(None)
        assert await clients[1].task is True
        await until(lambda: clients[0].began == 2)
        session.say(None)
        assert await clients[0].task is True

    run(use)


def test_what_was_under_way_goes_to_the_stream_that_had_it() -> None:
    async def use(session: Session) -> None:
        late = Late(session)
        await until(lambda: late.began)
        await session.open()
        await until(lambda: late.plain)
        assert late.plain == [b"event: message\nid: %b-1\ndata: under way\n\n" % session.replay.name.encode()]

    run(use)


class Late(Client):
    """It has a message in its hands when another stream takes over."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, None)
        session.clients.append(self)

    async def work(self, note: Note) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            if self.began == 1:
                note(b"under way")


@pytest.mark.parametrize("leaves", [False, True])
def test_nothing_to_listen_to(leaves: bool) -> None:
    async def use(session: Session) -> None:
        async def send(data: bytes) -> None:
            raise AssertionError(data)

        async def nothing(note: Note) -> None:
            if leaves:
                await asyncio.Event().wait()

        task = spawn("client", session.streams.serve(None, nothing, send))
        if leaves:
            await until(lambda: len(session.streams))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        else:
            assert await task is False
        client = await session.open()
        session.say(b"1")
        await until(lambda: client.texts == [b"1"])

    run(use)
