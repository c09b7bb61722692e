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
