from collections.abc import Iterable

from headgate_engine.context.request import RequestContext

class CheckQuestion:
    """Writes what a service is asked about a request: envoy.service.auth.v3.CheckRequest.

    sent: names of headers that the service sees, None for all. body_bytes: how much of the body it sees, -1 for
    nothing. as_bytes: as bytes instead of text. context: its context extensions.
    """

    def __init__(
        self, sent: Iterable[str] | None, body_bytes: int, as_bytes: bool, context: Iterable[tuple[str, str]]
    ) -> None: ...
    def encode(self, ctx: RequestContext, more: bytes = b"", ends: list[object] | None = None) -> bytes:
        """Return the message. `more`: further fields of its AttributeContext, encoded.

        `ends`: where the request comes from and goes to, if its connection does not say so: address, port, SPIFFE
        id and certificate of the client, address, port and server name on this side, start time, version.
        """

class Allowance:
    """A request may go on, with changes to its fields and to those of its response."""

    def __init__(self, *args: object, **kwargs: object) -> None: ...
    def apply(self, ctx: RequestContext) -> None: ...

def read_allowance(message: bytes) -> Allowance | None:
    """Read a CheckResponse that allows a request. None: it says more than that, refuses the request, or is
    malformed."""
