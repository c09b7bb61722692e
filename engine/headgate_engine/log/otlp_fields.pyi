from headgate_engine.context.request import RequestContext
from headgate_engine.log.fields import LogFields
from headgate_engine.log.request_fields import RequestFields

FIELDS: tuple[str, ...]
ORDER: tuple[str, ...]

class OtlpFields(RequestFields):
    """The fields of a request as attributes of OTLP; see AccessLogFormat for `remove` and `fields`.

    span: attributes of a span, otherwise of a log record.
    """

    def __init__(
        self, remove: tuple[str, ...] = (), fields: LogFields | None = None, *, span: bool = False
    ) -> None: ...
    def attributes(self, ctx: RequestContext) -> bytes:
        """Return the attributes of a request as fields of the message that has them. For tests."""
