from headgate_engine.context.headers import MessageHead

class TraceContext:
    """The place of a request in a trace, after the client's `traceparent` (https://www.w3.org/TR/trace-context/)."""

    def __init__(self, head: MessageHead) -> None:
        """Read the client's field; without a usable one a new trace begins."""

    @property
    def ids(self) -> tuple[str, str, str | None]:
        """Return the ids of the trace, of the request's span and of the client's span, in hexadecimal digits."""

    @property
    def from_client(self) -> bool | None:
        """Return whether the client says that it records the trace. None: it has sent no usable field."""

    def tell(self, head: MessageHead, *, sampled: bool = False) -> None:
        """Write `traceparent` into a head that is sent on."""
