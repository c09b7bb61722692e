import asyncio

from headgate_engine.context.request import RequestContext
from headgate_engine.log.access import AccessLogFormat
from headgate_engine.shared.counters import Counter

FIELDS: tuple[str, ...]
DELAY: float
END_PAUSE: float
END_TRIES: int

class RecordFormat:
    """The format of a request's record.

    line: its attributes, as JSON (otherwise ValueError), and the filter of requests. payload: include prompts and
    answers of models.
    """

    def __init__(self, line: AccessLogFormat, payload: bool = False) -> None: ...
    @property
    def line(self) -> AccessLogFormat: ...
    @property
    def payload(self) -> bool: ...
    def record(self, now_ns: int, ctx: RequestContext) -> bytes:
        """Return the record of a finished request, b"" if the filter excludes it."""

class RecordSink:
    """The writing end of a pipe to the process that stores records. When it is full, records are dropped and counted.

    fd: becomes non-blocking; the sink owns and closes it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, dropped: Counter | None = None) -> None: ...
    @property
    def fd(self) -> int: ...
    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...
    def pending(self) -> int:
        """Return the number of waiting bytes."""
    def add(self, ctx: RequestContext, form: RecordFormat) -> None:
        """Write the record of a finished request, as the request path does. For tests."""
    async def aclose(self) -> None:
        """Write the waiting records, for at most a second, and close the pipe."""
