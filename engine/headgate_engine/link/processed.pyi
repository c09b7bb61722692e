from typing import Protocol, type_check_only

from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.link.filter import StreamFilter
from headgate_engine.link.grpc_stream import GrpcDuplexCall

PASSES: int
HOLDS: int
GATHERS: int
FEEDS: int
DROPS: int
# Lengths of a message that goes on as it came, and of one that is not known.
KEPT: int
UNKNOWN_LENGTH: int

@type_check_only
class ProcessingSession(Protocol):
    """What is told of a request that passes through a processor. `response` tells the direction."""

    def data(self, response: bool, data: bytes, /) -> None:
        """A piece of a body that is fed."""
    def full(self, response: bool, /) -> None:
        """What is gathered has reached its limit."""
    def end(self, response: bool, trailers: MessageHead | None, /) -> None:
        """A body that is fed or gathered has ended; of one that passes, if it has trailers that are watched."""
    def head(self, head: MessageHead, content: bool, /) -> None:
        """The response has come; its body is held. content: it has one."""
    def own_answer(self, /) -> None:
        """The gateway answers by itself, or both sides switch protocols: what follows passes."""
    def closed(self, /) -> None:
        """The request is over."""
    def unblocked(self, /) -> None:
        """The client or the backend takes more of what the processor has made."""

class ProcessedStream(StreamFilter):
    """Stands between a request and its client, and sends both bodies where a session wants them."""

    def __init__(self, ctx: RequestContext, session: ProcessingSession) -> None:
        """Put itself next to the request of `ctx`."""
    def set_stream(self, grpc: GrpcDuplexCall | None) -> None:
        """The call to the processor: while it is congested, the sources of what is fed are paused."""
    @property
    def request_content(self) -> bool:
        """Whether the request has a body."""
    @property
    def blocked(self) -> bool:
        """The client takes no more for now, and the processor is not read."""
    @property
    def whole(self) -> bool:
        """The request body had been read before: what is made of it has to be whole as well."""
    def set_mode(self, response: bool, mode: int, limit: int = 0, watch: bool = False) -> None:
        """Say what becomes of a body from here on; what was held or gathered goes the same way.

        limit: most bytes that are gathered. watch: trailers of a body that passes are told before they go on.
        """
    def gathered(self, response: bool, most: int = -1) -> bytes:
        """Take what was gathered, or its first `most` bytes."""
    def set_request_length(self, length: int) -> None:
        """Set what is known of the request body's length: KEPT, UNKNOWN_LENGTH or bytes."""
    delivering: bool
    """Messages of the processor are being told: push() follows, and what they bring about can leave together."""
    def send(self, response: bool, data: bytes, at: int = 0, size: int = -1) -> None:
        """Send a piece of a body on: `size` bytes of the data from `at` on. Raises ValueError for what is beyond it."""
    def end(self, response: bool, trailers: MessageHead | None = None) -> None:
        """Send the end of a body on. What the source still sends is dropped."""
    def replace_request(self, body: bytes) -> None:
        """Put another body in the place of the client's."""
    def begin_response(self, length: int) -> None:
        """Send the head of the response on, as it is now. length: bytes of its body, as in set_request_length()."""
    def suspend(self) -> None:
        """The step that has made this suspends the request."""
    def go_on(self) -> None:
        """Continue the request if it is suspended."""
    def fail(self, reply: Reply, detail: str | None) -> None:
        """Answer with `reply`. A response of which the client has a part is broken off. detail: for the log."""
    def give_up_source(self) -> None:
        """End the call to the backend: nothing more of the response is wanted."""
    def processor_writable(self) -> None:
        """The processor takes more: let the sources of what is fed go on."""
    def push(self) -> None:
        """Send what was written, to both sides."""
