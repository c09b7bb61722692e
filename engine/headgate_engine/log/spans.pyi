from collections.abc import Iterable

from headgate_engine.context.trace_context import TraceContext
from headgate_engine.expr.program import Program
from headgate_engine.log.otlp_fields import OtlpFields
from headgate_engine.log.otlp_sink import OtlpSink

HIDABLE: dict[str, int]

class Sampling:
    """A share of requests, 0..1 (ValueError for others), or an expression whose bool or number says it for each.

    An expression that fails, or has another value, chooses none.
    """

    def __init__(self, ratio: float = 0.0, program: Program | None = None) -> None: ...
    @property
    def ratio(self) -> float: ...
    @property
    def program(self) -> Program | None: ...

class TracePlan:
    """Which requests have spans, what these say, and where they go.

    random: of requests that begin a trace; client: of those that a client's trace has. name: of a request's span.
    """

    def __init__(
        self, fields: OtlpFields, sink: OtlpSink, random: Sampling, client: Sampling, name: Program | None = None
    ) -> None: ...
    @property
    def fields(self) -> OtlpFields: ...
    @property
    def sink(self) -> OtlpSink: ...
    @property
    def random(self) -> Sampling: ...
    @property
    def client(self) -> Sampling: ...
    @property
    def name(self) -> Program | None: ...

class RequestSpans(TraceContext):
    """The spans of a request that is sampled. At most 64 below that of the request are kept."""

    @property
    def dropped(self) -> int: ...
    @property
    def parent_of_calls(self) -> str:
        """Return the id of the span under which calls are made: that of the attempt, or of the request."""

    def nested(
        self,
        name: str,
        ids: tuple[str, str],
        times: tuple[int, int],
        attributes: Iterable[tuple[str, object]],
        failure: str | None = None,
    ) -> None:
        """Add a client span that has ended. `ids`: its own, and that of the span above it; `times`: its start and end,
        in ns of CLOCK_MONOTONIC; `failure`: why it failed."""
