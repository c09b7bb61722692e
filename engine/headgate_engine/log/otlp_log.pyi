from headgate_engine.context.request import RequestContext
from headgate_engine.log.otlp_fields import OtlpFields
from headgate_engine.log.otlp_sink import OtlpSink

class OtlpLogPlan:
    """How finished requests become log records, and where these go."""

    def __init__(self, fields: OtlpFields, sink: OtlpSink) -> None: ...
    @property
    def fields(self) -> OtlpFields: ...
    @property
    def sink(self) -> OtlpSink: ...
    def add(self, ctx: RequestContext, wall_ns: int) -> None:
        """Add the record of a request, as the request path does. For tests."""
