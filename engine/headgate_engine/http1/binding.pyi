from headgate_engine.http1.codec import Http1Codec
from headgate_engine.wire.events import Event

SERVER: int
CLIENT: int

class PythonCodec(Http1Codec):
    """Http1Codec for Python callers: bytes in, events out; events in, bytes out."""

    def receive(self, data: bytes) -> None:
        """Take bytes from the peer; b"" tells that it closed its half. Call next_event() until NeedData or Paused."""
    def next_event(self) -> Event:
        """Return the next event; RemoteProtocolError when the peer broke the protocol."""
    def send(self, event: Event, close: bool = False) -> bytes:
        """Return the bytes of an event; LocalProtocolError when it may not be sent now."""
    def next_cycle(self) -> None:
        """Go on with the next message; LocalProtocolError while the connection cannot take one."""
    @property
    def can_reuse(self) -> bool: ...
    @property
    def unread(self) -> int:
        """Bytes received and not yet told in events."""
    @property
    def held_memory(self) -> int:
        """Bytes of memory the codec keeps for input; 0 when it is idle."""
    @property
    def waits_for_continue(self) -> bool:
        """True while the client holds its body back for a 100 response."""

def bench_parse(data: bytes, times: int) -> None:
    """Parse a request head `times` times; for bench/micro."""

def bench_send_request(data: bytes, times: int) -> bytes:
    """Write the request whose head `data` is `times` times and return it once; for bench/micro."""
