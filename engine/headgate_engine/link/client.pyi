import asyncio
from collections.abc import AsyncIterator, Iterable
from contextvars import ContextVar

from headgate_engine.context.headers import MessageHead
from headgate_engine.link.contract import ResponseSink
from headgate_engine.link.pool import Pool
from headgate_engine.link.spanned import NestedCalls, TargetCall
from headgate_engine.shared.histogram import Histogram

CALLER: ContextVar[object | None]
SPANS: ContextVar[NestedCalls | TargetCall | None]
IDEMPOTENT: frozenset[str]

class CallError(OSError):
    """The call failed before or within its response.

    `timed_out` tells a connect time-out, `refused` that its pool did not let it go out: the destination knows nothing
    of it.
    """

    timed_out: bool
    refused: bool
    def __init__(self, detail: str, timed_out: bool = False, refused: bool = False) -> None: ...

class HttpClient:
    """Calls to one destination through a pool. authority: value of the host field.

    calls: counts the seconds until the head of a response, or until the failure. subtype: what calls are for, in spans.
    """

    def __init__(self, pool: Pool, authority: str, calls: Histogram | None = None, subtype: str = "Http") -> None: ...
    @property
    def pool(self) -> Pool: ...
    async def request(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes | None = None,
        authority: str | None = None,
    ) -> ClientResponse:
        """Send a request and return its Response once the head has come; raises CallError.

        authority: another value of the host field for this one.

        An idempotent request on a kept connection that turns out closed before a byte of the answer is sent once
        more on a fresh one (RFC 9112 section 9.3.1); others are not.
        """

class ClientCall(ResponseSink):
    """One call in progress; HttpClient makes it."""

    def __init__(self, *args: object, **kwargs: object) -> None: ...
    @property
    def head_ready(self) -> asyncio.Future[None]: ...
    async def next_chunk(self) -> bytes: ...

class ClientResponse:
    """Head and body of an answer. Close it with aclose() unless the body was read to its end."""

    def __init__(self, call: ClientCall) -> None: ...
    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> list[tuple[str, str]]: ...
    @property
    def head(self) -> MessageHead:
        """The head of the answer, for expressions about it."""
    def header(self, name: str) -> str | None: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def __anext__(self) -> bytes: ...
    async def read(self, limit: int) -> bytes:
        """Return the whole body; ValueError past `limit` bytes, CallError when it breaks off."""
    async def aclose(self) -> None: ...
