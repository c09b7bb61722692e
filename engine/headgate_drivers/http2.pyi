from collections.abc import Iterable

from headgate_engine.context.headers import MessageHead
from headgate_engine.http2.hpack import HpackDecoder, HpackEncoder
from headgate_engine.http2.limits import Http2Limits
from headgate_engine.http2.table import DynamicTable

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

class Http2FrameWriter:
    """Frames as bytes."""

    @staticmethod
    def data(stream: int, data: bytes, end: bool = False) -> bytes: ...
    @staticmethod
    def headers(stream: int, block: bytes, end: bool = False, max_frame: int = 16384) -> bytes: ...
    @staticmethod
    def reset(stream: int, code: int) -> bytes: ...
    @staticmethod
    def window_update(stream: int, increment: int) -> bytes: ...
    @staticmethod
    def ping(eight: bytes, ack: bool = False) -> bytes: ...
    @staticmethod
    def goaway(last: int, code: int, detail: bytes = b"") -> bytes: ...
    @staticmethod
    def settings(values: tuple[tuple[int, int], ...] | None = None) -> bytes:
        """`values`: ((number, value), ...); None acknowledges."""

def request_of(fields: Iterable[tuple[bytes, bytes]], extended: bool = False) -> MessageHead:
    """Return the head of a request with these (name, value) pairs; StreamFault if it is malformed."""

def response_of(fields: Iterable[tuple[bytes, bytes]]) -> MessageHead:
    """The same for a response."""

def trailers_of(fields: Iterable[tuple[bytes, bytes]]) -> MessageHead:
    """The same for trailers."""

def block_of(encoder: HpackEncoder, head: MessageHead, length: int = -1, upgrade: bool = False) -> bytes:
    """Return the header block of a request (to an http server) or, if it has a status, of a response."""

def set_encoder_limit(encoder: HpackEncoder, limit: int) -> None:
    """The peer allows a table of this size."""

def set_decoder_limit(decoder: HpackDecoder, limit: int) -> None:
    """The peer has acknowledged this size of the table."""

def resize(table: DynamicTable, limit: int) -> None: ...
def find_static(name: bytes, value: bytes) -> tuple[int, bool]:
    """Return the index of a field in the static table (0: none), and whether the value is the same too."""
