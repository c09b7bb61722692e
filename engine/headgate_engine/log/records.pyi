import asyncio

from headgate_engine.context.request import RequestContext
from headgate_engine.log.access import AccessLogFormat
from headgate_engine.shared.counters import Counter

FIELDS: tuple[str, ...]
DELAY: float
END_PAUSE: float
END_TRIES: int

class RecordFormat:
    """What is kept of a request. line: its attributes, as JSON (else ValueError), and which requests are kept.
    payload: prompts and answers of models too.
    """

    def __init__(self, line: AccessLogFormat, payload: bool = False) -> None: ...
    @property
    def line(self) -> AccessLogFormat: ...
    @property
    def payload(self) -> bool: ...
    def record(self, now_ns: int, ctx: RequestContext) -> bytes:
        """Return the record of a finished request, empty when it is not kept."""

class RecordSink:
    """The writing end of a pipe to whoever stores records; full, it drops and counts. fd: owned from now on."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, dropped: Counter | None = None) -> None: ...
    @property
    def fd(self) -> int: ...
    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...
    def pending(self) -> int:
        """Return how many bytes wait."""
    def add(self, ctx: RequestContext, form: RecordFormat) -> None:
        """Take the record of a finished request, as the request path does."""
    async def aclose(self) -> None:
        """Send what waits, for a second at most, and close the pipe."""
