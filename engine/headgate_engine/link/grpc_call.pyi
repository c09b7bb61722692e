import asyncio
from collections.abc import Iterable
from contextvars import ContextVar

from headgate_engine.link.contract import ResponseSink
from headgate_engine.link.pool import Pool
from headgate_engine.link.spanned import NestedCalls
from headgate_engine.link.timers import Timer
from headgate_engine.shared.histogram import Histogram

SPANS: ContextVar[NestedCalls | None]

class GrpcFailure(Exception):
    """A call did not end with OK. code: the status code of gRPC. unsent: no server has begun to process it.

    Codes: https://github.com/grpc/grpc/blob/master/doc/statuscodes.md.
    """

    code: int
    text: str
    unsent: bool
    def __init__(self, code: int, text: str, unsent: bool = False) -> None: ...

def status_of_http(status: int) -> int:
    """Return the status code of gRPC for an HTTP answer that has none."""

class GrpcCaller:
    """Unary calls to one endpoint, whose pool speaks HTTP/2. authority: value of `:authority`.

    calls: counts the seconds until the end of a call, or until its failure. subtype: what calls are for, in spans.
    """

    def __init__(
        self, pool: Pool, authority: str, calls: Histogram | None = None, subtype: str = "Http"
    ) -> None: ...
    @property
    def pool(self) -> Pool: ...
    async def unary(
        self,
        path: str,
        message: bytes,
        headers: Iterable[tuple[str, str]] = (),
        timeout_s: float = 10.0,
        limit: int = 4194304,
    ) -> bytes:
        """Return the message of the answer to a call of `/package.Service/Method`; raises GrpcFailure.

        The call is cancelled with its task. `headers` are further metadata, names in lower case. `timeout_s` covers
        the whole call including the connect, and is sent to the server (`grpc-timeout`). `limit` bounds the response
        message in bytes. A call that the server says it has not begun is sent again, three times in all.
        """

class UnaryListener:
    """Who makes a call from compiled code."""

class CallFuture(UnaryListener):
    """Who waits for a call as a task."""

    @property
    def future(self) -> asyncio.Future[bytes]: ...

class CallDeadline(Timer):
    """The time of a call."""

class GrpcCall(ResponseSink):
    """One call in progress; GrpcCaller makes it."""

    def __init__(self, *args: object, **kwargs: object) -> None: ...
    def abandon(self) -> None:
        """Cancel the call if it is in progress."""
