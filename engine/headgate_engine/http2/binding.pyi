from collections.abc import Iterable

from headgate_engine.http2.limits import Http2Limits

_Fields = Iterable[tuple[bytes, bytes]]

class Http2Peer:
    """One side of a connection. Times are seconds; events are tuples that begin with their name."""

    heard: list[tuple[object, ...]]
    def __init__(self, server: bool, limits: Http2Limits | None = None, extended: bool = False) -> None: ...
    def receive(self, data: bytes, later: float = 0.0) -> list[tuple[object, ...]]:
        """Return the events of the bytes; ConnectionFault for what ends the connection: `heard` has those before it.

        later: seconds that have passed.
        """
    def fault(self, code: int, detail: str) -> None:
        """The connection ends with this error."""
    def output(self) -> bytes:
        """Return what is to be written."""
    def block(self, blocked: bool) -> None:
        """The socket takes nothing."""
    def request(self, fields: _Fields, upgrade: bool = False) -> int | None:
        """Open a stream; (name, value) pairs with pseudo-header fields. Return its number, None without room."""
    def respond(self, number: int, fields: _Fields) -> None: ...
    def send(self, number: int, data: bytes) -> None: ...
    def end(self, number: int, trailers: _Fields | None = None) -> None: ...
    def reset(self, number: int, code: int) -> None: ...
    def pause(self, number: int) -> None: ...
    def resume(self, number: int) -> tuple[bytes, bool]:
        """Return what came meanwhile, and whether the end did."""
    def state(self, number: int) -> str: ...
    def waiting(self, number: int) -> int:
        """Bytes of DATA that wait."""
    @property
    def open_streams(self) -> int: ...
    def notice(self) -> None: ...
    def goaway(self, code: int, detail: str = "") -> None: ...
    def ping(self) -> None: ...
