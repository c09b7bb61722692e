from collections.abc import Iterable
from typing import Protocol, type_check_only

from headgate_engine.link.contract import ResponseSink
from headgate_engine.link.grpc_call import GrpcCaller, GrpcFailure

@type_check_only
class StreamListener(Protocol):
    """Who makes a call. Every method may close the stream."""

    def message(self, data: bytes, /) -> None: ...
    def flushed(self, /) -> None:
        """What has been told for now is all: what it has brought about can leave together."""
    def writable(self, /) -> None:
        """The server takes more."""
    def failed(self, failure: GrpcFailure, /) -> None:
        """The call has ended with a failure: nothing more is told."""
    def ended(self, /) -> None:
        """The server has ended the call with OK: nothing more is told."""

class GrpcDuplexCall(ResponseSink):
    """One call with messages in both directions. limit: bytes of a message that is received.

    What is sent before `open()`, or before there is a connection, waits; so does what may have to be sent again, up to
    64 KiB.
    """

    def __init__(self, listener: StreamListener, limit: int = 4194304) -> None: ...
    @property
    def answered(self) -> bool:
        """A message of the server has come."""
    @property
    def congested(self) -> bool:
        """Whoever sends should stop: writable() of the listener follows."""
    def open(self, caller: GrpcCaller, path: str, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Begin the call of `/package.Service/Method`. A call that has failed unsent may be opened again elsewhere."""
    def send(self, framed: bytes) -> None:
        """Send a message, which has its prefix already: a flag and its length."""
    def finish(self) -> None:
        """Half-close the call: no more messages will be sent."""
    def pause(self) -> None:
        """Stop reading. Messages of what was read already are told."""
    def resume(self) -> None: ...
    def close(self) -> None:
        """Cancel the call if it is in progress. Nothing more is told."""
