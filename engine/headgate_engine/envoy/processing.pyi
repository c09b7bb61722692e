"""The messages to and from an external processor
(https://www.envoyproxy.io/docs/envoy/latest/api-v3/service/ext_proc/v3/external_processor.proto).
"""

from headgate_engine.context.headers import MessageHead

NOTHING: int
ITSELF: int
HEADS: frozenset[int]
BODIES: frozenset[int]
OF_RESPONSES: frozenset[int]

def request_head(head: MessageHead, secure: bool, last: bool, more: bytes = b"") -> bytes:
    """Return the message with the head of a request, framed for gRPC.

    Messages: envoy.service.ext_proc.v3.ProcessingRequest. Pseudo-header fields come first, all names are in lower
    case, values are raw. `last`: nothing follows it. `more`: further fields of the message, encoded.
    """

def response_head(head: MessageHead, last: bool, more: bytes = b"") -> bytes:
    """The same for the head of a response."""

def body_part(data: bytes, response: bool, last: bool, more: bytes = b"") -> bytes:
    """The same for a piece of a body, or all of it. `last`: nothing follows, no trailers either."""

def trailer_part(trailers: MessageHead, response: bool, more: bytes = b"") -> bytes:
    """The same for trailers."""

def read_answer(message: bytes) -> ProcessorAnswer:
    """Read a ProcessingResponse. Raises ValueError for what is none."""

class ProcessorAnswer:
    """What a processor has said of a part.

    part: the number of its field: NOTHING, ITSELF (an ImmediateResponse), one of HEADS or BODIES, or trailers.
    status: of CommonResponse. mutation: what becomes of the body: 0 nothing, 1 another one, 2 cleared, 3 a
    piece of one that is streamed. body_at, body_size: where `body` stands in the message, in bytes. last: of a piece.
    more: metadata, another mode or an answer to the client are in the message.
    """

    def __init__(self, *args: object, **kwargs: object) -> None: ...
    @property
    def part(self) -> int: ...
    @property
    def status(self) -> int: ...
    @property
    def body(self) -> bytes: ...
    @property
    def body_at(self) -> int: ...
    @property
    def body_size(self) -> int: ...
    @property
    def mutation(self) -> int: ...
    @property
    def last(self) -> bool: ...
    @property
    def more(self) -> bool: ...
    @property
    def edits_head(self) -> bool:
        """Whether fields are to be changed."""
    def edit_request(self, head: MessageHead) -> None:
        """Change the head of a request. What is not allowed or not valid is left out."""
    def edit_response(self, head: MessageHead) -> None:
        """Change the head of a response."""
    def edit_trailers(self, head: MessageHead) -> None:
        """Change trailers."""
