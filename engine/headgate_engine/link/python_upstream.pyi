from collections.abc import Callable

from headgate_engine.link.contract import ClientConnection, ClientStream, ConnectionOwner, UpstreamProtocol
from headgate_engine.link.worker import Worker

class PythonConnection(ClientConnection):
    """One connection of a protocol written in Python; made by a pool, for its connector to open."""

    max_streams: int
    def __init__(self, protocol: PythonUpstream, owner: ConnectionOwner) -> None: ...
    @property
    def streams(self) -> list[PythonStream]:
        """The calls in progress, oldest first."""
    def opened(self) -> None:
        """Report that the connection can take calls."""
    def allow(self, streams: int) -> None:
        """Take so many calls at a time from now on."""
    def go_away(self, last: PythonStream | None = None) -> None:
        """Take no more calls; those begun behind `last` (all, for None) were not looked at (RFC 9113 section 6.8)."""
    def closed_by_peer(self, detail: str = "connection closed") -> None: ...

class PythonStream(ClientStream):
    """One call. Its request is whole when `serve` gets it; one of respond(), refuse() and fail() ends it."""

    @property
    def method(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def payload(self) -> bytes:
        """The body of the request."""
    @property
    def over(self) -> bool: ...
    def respond(self, status: int, body: bytes = b"") -> None:
        """Answer the call; does nothing when it was given up."""
    def refuse(self) -> None:
        """Tell that the peer did nothing for this call and will not (RFC 9113 section 8.7)."""
    def fail(self, detail: str) -> None: ...

class PythonUpstream(UpstreamProtocol):
    """A protocol with a backend. serve: called with each call whose request is complete, from the loop.

    streams: calls at a time on a new connection, at least 1, else ValueError.
    """

    def __init__(self, worker: Worker, name: str, serve: Callable[[PythonStream], None], streams: int = 1) -> None: ...
