from collections.abc import Iterable

from headgate_engine.link.observer import RequestObserver

GRPC_CODES: tuple[str, ...]

class SpanObserver(RequestObserver):
    """C face only: tells the spans of a request what happens to it."""

class NestedCall:
    """A call that a step or a handler makes for a request that is sampled."""

    def fields(self, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the header fields with the `traceparent` of this call in the place of the request's."""

    def end(self, status: int, failure: str | None = None, *, grpc: bool = False) -> None:
        """End the span. status: of the answer, of HTTP or of gRPC; failure: why there is none."""

class NestedCalls:
    """The spans of the calls that steps and handlers make for one request; a value of link.client.SPANS."""

    def begin(self, subtype: str, where: str, method: str, target: str) -> NestedCall:
        """Begin the span of a call. subtype: Http, Mcp, ExtAuthz ...; where: host:port."""

    withdrawn: str | None
    def target_call(self) -> TargetCall:
        """Begin the span of a call of one MCP target. The span of the request's own call is withdrawn: `withdrawn` is
        the `traceparent` that names it."""

class TargetCall:
    """A call of one MCP target for a request that is sampled; a value of link.client.SPANS while it is under way."""

    @property
    def traceparent(self) -> str | None:
        """The field that makes this call the parent; None behind its end."""

    def begin(self, subtype: str, where: str, method: str, target: str) -> NestedCall | CarriedCall:
        """Begin a call below this one: of the target itself, or of a service that a policy asks."""

    def finish(self, name: str, attributes: Iterable[tuple[str, object]], failure: str | None = None) -> None:
        """End the span. name: its name; failure: what went wrong."""

class CarriedCall:
    """An HTTP call under a TargetCall, which has the span of both."""

    def __init__(self, call: TargetCall) -> None: ...
    def fields(self, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the header fields with the `traceparent` of the target's call."""

    def end(self, status: int, failure: str | None = None, *, grpc: bool = False) -> None:
        """Do nothing more: the target's call ends by itself."""
