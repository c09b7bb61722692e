from headgate_drivers.events import Event
from headgate_engine.http1.codec import Http1Codec

SERVER: int
CLIENT: int

class PythonCodec(Http1Codec):
    """Http1Codec for Python callers: receives bytes and returns events, takes events and returns bytes."""

    def receive(self, data: bytes) -> None:
        """Take bytes from the peer; b"" means that it closed its direction.

        Call next_event() afterwards until it returns NeedData or Paused.
        """
    def next_event(self) -> Event:
        """Return the next event. Raises RemoteProtocolError if the peer broke the protocol."""
    def send(self, event: Event, close: bool = False) -> bytes:
        """Return the bytes of an event. close: close the connection after it.

        Raises LocalProtocolError if the event is not allowed now.
        """
    def next_cycle(self) -> None:
        """Start the next message. Raises LocalProtocolError if the connection is not ready for one."""
    @property
    def can_reuse(self) -> bool: ...
    @property
    def unread(self) -> int:
        """Received bytes that no event has returned yet."""

def bench_parse(data: bytes, times: int) -> None:
    """Parse a request head `times` times, for bench/micro: without the cost of Python calls."""

def bench_send_request(data: bytes, times: int) -> bytes:
    """Write the request with the head `data` `times` times and return it once, for bench/micro."""
