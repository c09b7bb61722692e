import asyncio

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

class RecordSink:
    """The writing end of a pipe to the process that stores records. When it is full, records are dropped and counted.

    fd: becomes non-blocking; the sink owns and closes it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, dropped: Counter | None = None) -> None: ...
    @property
    def fd(self) -> int: ...
    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...
    async def aclose(self) -> None:
        """Write the waiting records, for at most a second, and close the pipe."""
