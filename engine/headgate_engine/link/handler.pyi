import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, type_check_only

from headgate_engine.context.request import RequestContext
from headgate_engine.link.backend import Backend, RoutedRequest
from headgate_engine.link.worker import Worker

@type_check_only
class RequestTelemetry(Protocol):
    """Is told the end of a request: the status (0: the client left first) and the last piece of the body."""

    def ended(self, status: int, answer: bytes) -> None: ...

class HandlerBackend(Backend):
    """Runs `await handle(call)` for each request, one task each, cancelled when the client goes away."""

    def __init__(
        self, worker: Worker, name: str, handle: Callable[[HandlerCall], Awaitable[None]]
    ) -> None: ...
    @property
    def worker(self) -> Worker: ...
    @property
    def name(self) -> str: ...
    def begin(self, request: RoutedRequest, begun: Any = None) -> HandlerCall:
        """Start the handler. `begun`: the call to a target that the engine has begun for this request."""

class HandlerCall:
    """One request as a handler sees it."""

    task: asyncio.Task[None] | None
    telemetry: RequestTelemetry | None
    begun: Any
    def __init__(self, exchange: RoutedRequest, begun: Any = None) -> None: ...
    @property
    def method(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def authority(self) -> str: ...
    @property
    def peer(self) -> str: ...
    @property
    def body(self) -> bytes: ...
    @property
    def headers(self) -> HandlerHeaders: ...
    @property
    def gone(self) -> bool: ...
    @property
    def answered(self) -> bool: ...
    @property
    def secure(self) -> bool: ...
    @property
    def context(self) -> RequestContext | None:
        """The request's context; None once it is over."""
    def add_log_field(self, key: str, value: object) -> None: ...
    def reply(
        self,
        status: int,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
        reason: str | None = None,
    ) -> None:
        """Answer with a whole body. A client that is gone is not an error."""
    def stream(self, status: int, headers: Iterable[tuple[str, str]] = ()) -> HandlerStream:
        """Send the head and return the stream for the body; ConnectionResetError when the client is gone."""
    @property
    def place(self) -> object:
        """What is equal for requests with equal route_labels(); None if they may all differ."""
    def route_labels(self) -> str:
        """Return the labels of its route and those of the configuration, in the form of series keys; while it lasts."""
    def client_writable(self) -> None: ...
    def client_gone(self) -> None: ...

class HandlerStream:
    """The body of a streamed answer."""

    def __init__(self, call: HandlerCall) -> None: ...
    async def send(self, data: bytes) -> None:
        """Send a piece; wait while a slow client has not taken what was sent before."""
    async def end(self) -> None: ...

class HandlerHeaders:
    """Request header fields: first value by name in any case, all in order."""

    def __init__(self, items: list[tuple[str, str]]) -> None: ...
    def get(self, name: str, default: str | None = None) -> str | None: ...
    def items(self) -> list[tuple[str, str]]: ...

def encode_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]: ...
