"""Happy Eyeballs: which of several addresses gets the connection."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import uvloop

from headgate.net.race import first_connected
from headgate.net.tasks import spawn

# Longer than any test: the next attempt begins for want of the first one only.
NEVER = 600.0
RUNNERS = [pytest.param(asyncio.run, id="asyncio"), pytest.param(uvloop.run, id="uvloop")]


@pytest.fixture
def hosts() -> Iterator[Callable[..., int]]:
    """`hosts(good=[...], deaf=[...])` listens on one port of these addresses of the loopback network, and returns it.

    The queue of a deaf one is full: the kernel drops what wants to connect, and nobody hears of it (listen(2)).
    """
    with ExitStack() as stack:

        def listen(good: tuple[str, ...] = (), deaf: tuple[str, ...] = ()) -> int:
            port = 0
            for address in (*good, *deaf):
                sock = stack.enter_context(socket.socket())
                sock.bind((address, port))
                port = sock.getsockname()[1]
                sock.listen(0 if address in deaf else 16)
                for _ in range(2 if address in deaf else 0):
                    filler = stack.enter_context(socket.socket())
                    filler.setblocking(False)
                    filler.connect_ex((address, port))
            return port

        yield listen


def noting(made: list[socket.socket]) -> type[socket.socket]:
    """Return the class of sockets that notes those of connections, and not those that the loop wakes itself up with."""

    class Noted(socket.socket):
        def __init__(self, *arguments: int) -> None:
            super().__init__(*arguments)
            if self.family == socket.AF_INET:
                made.append(self)

    return Noted


def connected(run: Callable[..., str], addresses: list[str], port: int, delay: float) -> str:
    async def main() -> str:
        with await first_connected(addresses, port, delay) as sock:
            return str(sock.getpeername()[0])

    return run(main())


@pytest.mark.parametrize("run", RUNNERS)
def test_the_first_address_that_answers_is_taken(hosts: Callable[..., int], run: Callable[..., str]) -> None:
    port = hosts(good=("127.0.0.2", "127.0.0.3"))
    assert connected(run, ["127.0.0.2", "127.0.0.3"], port, NEVER) == "127.0.0.2"


@pytest.mark.parametrize("run", RUNNERS)
def test_one_that_refuses_is_followed_at_once(hosts: Callable[..., int], run: Callable[..., str]) -> None:
    port = hosts(good=("127.0.0.3",))
    assert connected(run, ["127.0.0.2", "127.0.0.4", "127.0.0.3"], port, NEVER) == "127.0.0.3"


@pytest.mark.parametrize("run", RUNNERS)
def test_one_that_is_silent_is_followed_after_the_delay(hosts: Callable[..., int], run: Callable[..., str]) -> None:
    port = hosts(good=("127.0.0.3",), deaf=("127.0.0.2",))
    assert connected(run, ["127.0.0.2", "127.0.0.3"], port, 0.01) == "127.0.0.3"


@pytest.mark.parametrize("run", RUNNERS)
def test_the_last_error_is_told(hosts: Callable[..., int], run: Callable[..., str]) -> None:
    port = hosts(good=("127.0.0.3",))
    with pytest.raises(OSError) as failure:
        connected(run, ["127.0.0.2", "127.0.0.4"], port, NEVER)
    assert failure.value.errno == errno.ECONNREFUSED


def test_attempts_that_lose_are_ended(hosts: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []
    port = hosts(good=("127.0.0.3",), deaf=("127.0.0.2", "127.0.0.5"))
    monkeypatch.setattr(socket, "socket", noting(made))
    assert connected(asyncio.run, ["127.0.0.2", "127.0.0.5", "127.0.0.3"], port, 0.01) == "127.0.0.3"
    assert len(made) == 3
    assert [one.fileno() for one in made] == [-1, -1, -1]


def test_who_leaves_ends_all_attempts(hosts: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []
    port = hosts(deaf=("127.0.0.2", "127.0.0.5"))

    async def main() -> None:
        monkeypatch.setattr(socket, "socket", noting(made))
        waiting = spawn("connect", first_connected(["127.0.0.2", "127.0.0.5"], port, 0.0))
        while len(made) < 2:  # noqa: ASYNC110 - nobody tells when the second attempt begins
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])

    asyncio.run(main())
    assert [one.fileno() for one in made] == [-1, -1]


def test_who_leaves_in_the_moment_of_the_connection_leaves_no_socket(
    hosts: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[socket.socket] = []
    port = hosts(good=("127.0.0.3",))

    class Connected(socket.socket):
        """Connected at once, as to a Unix socket or within the same host."""

        def __init__(self, *arguments: int) -> None:
            super().__init__(*arguments)
            made.append(self)

        def connect_ex(self, address: object) -> int:
            self.setblocking(True)
            return super().connect_ex(address)  # type: ignore[arg-type]

    async def main() -> None:
        monkeypatch.setattr(socket, "socket", Connected)
        waiting = spawn("connect", first_connected(["127.0.0.3", "127.0.0.2"], port, NEVER))
        asyncio.get_running_loop().call_soon(waiting.cancel)
        await asyncio.wait([waiting])
        if not waiting.cancelled():
            waiting.result().close()

    asyncio.run(main())
    assert [one.fileno() for one in made] == [-1]
