import asyncio
from collections.abc import Callable
from typing import final

from headgate_engine.link.worker import Worker
from headgate_engine.shared.loads import WorkerLoads

LEAVE_SECONDS: float
LOOK_SECONDS: float

def epoll_descriptor(loop: asyncio.AbstractEventLoop) -> int:
    """Return the descriptor of the epoll set that a loop stands on, -1 where it does not say or has none."""

@final
class SharedAccept:
    """The part of a worker in accepting from ports that all workers share.

    wake_fds: non-blocking eventfds of all workers, by their index; the worker owns none of them. ValueError when there
    are not as many as `loads` has workers, or the loop of the worker does not stand on epoll.
    """

    def __init__(self, worker: Worker, loads: WorkerLoads, wake_fds: tuple[int, ...]) -> None: ...
    def start(self) -> None:
        """Let other workers call this one."""
    def leave(self) -> None:
        """Have other workers accept what they can themselves: this one is about to end."""
    def stop(self) -> None:
        """Hear no more calls."""

@final
class SharedPort:
    """A listening socket of this worker that other workers listen on, too. `key` is the same in all of them.

    factory: makes a connection of the worker (link.protocols). take: accepts one connection, if there is one, for which
    it calls connect(); where it is None, libuv accepts, and calls connect() as its protocol factory.
    """

    def __init__(
        self,
        accept: SharedAccept,
        fd: int,
        key: str,
        factory: Callable[[], asyncio.BaseProtocol],
        take: Callable[[], object] | None = None,
    ) -> None: ...
    @property
    def fd(self) -> int: ...
    async def start(self, server_fd: int = -1) -> None:
        """Begin to accept. server_fd: the duplicate of the socket that the loop has just begun to listen on.

        OSError when the kernel refuses; ValueError with a `server_fd` and a `take`, without both, or when it runs.
        """
    def connect(self) -> asyncio.BaseProtocol:
        """Return a new connection for a socket that was just accepted; it counts from now on."""
    def failed(self, connection: object) -> None:
        """Forget an accepted connection whose handshake failed."""
    def stop(self) -> None:
        """Accept no more, and give the epoll set of the loop back as it was. The sockets stay open."""
