from collections.abc import Mapping

from headgate_engine.context.request import RequestContext
from headgate_engine.log.access import AccessLogFormat
from headgate_engine.log.fields import LogFields
from headgate_engine.log.model_meter import ModelMeter
from headgate_engine.log.records import RecordFormat, RecordSink
from headgate_engine.log.spans import Sampling

def text_value(value: bytes) -> bytes:
    r"""Return the form of a value in a text line.

    It is bare if it is visible ASCII without quotes and backslashes. Otherwise it is in double quotes: `"` and `\` have
    a backslash; control characters (C0, DEL, C1), line separators, direction marks and bytes that are not UTF-8 are
    \xNN.
    """

def access_line(form: AccessLogFormat, wall_ns: int, request: Mapping[str, object]) -> bytes:
    """Return the line of a request that is given in parts, with the code of the request path.

    Raises KeyError for a part that there is not.
    """

def nanoseconds_per_line(form: AccessLogFormat, request: Mapping[str, object], *, rounds: int = 10000) -> float:
    """Return the mean time of a line, measured in C. rounds: 1..10**8, otherwise ValueError."""

def is_logged(fields: LogFields, ctx: RequestContext) -> bool:
    """Return whether the filter takes a request."""

def added_fields(fields: LogFields, ctx: RequestContext) -> list[tuple[str, object]]:
    """Return the (key, value) pairs of a request."""

def is_sampled(sampling: Sampling, ctx: RequestContext) -> bool:
    """Return whether a request is sampled; it may be another answer the next time."""

def record_of(form: RecordFormat, now_ns: int, ctx: RequestContext) -> bytes:
    """Return the record of a finished request, b"" if the filter excludes it. now_ns: ns since 1970."""

def add_record(sink: RecordSink, ctx: RequestContext, form: RecordFormat) -> None:
    """Write the record of a finished request, as the request path does."""

def waiting_bytes(sink: RecordSink) -> int:
    """Return the number of bytes that the pipe has not taken."""

def count_model_call(meter: ModelMeter, duration_ns: int, error: str = ...) -> None:
    """Count a call of `duration_ns` ns; error: the value of `error_type`, empty without one."""
