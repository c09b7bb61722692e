from collections.abc import Callable
from typing import Any, Protocol, type_check_only

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.link.backend import Backend
from headgate_engine.link.client import ClientCall, HttpClient, Response
from headgate_engine.link.handler import HandlerBackend
from headgate_engine.link.timers import Timer
from headgate_engine.mcp.telemetry import RequestTelemetry
from headgate_engine.plan.step import Step

ACCEPT: bytes

@type_check_only
class SessionTable(Protocol):
    """The sessions of a backend in this worker."""

    def find(self, session_id: str, owner: str = ...) -> Any | None:
        """Return the living session of an id and an owner, and note that it is used."""
    def begin_use(self, session: Any) -> None: ...
    def end_use(self, session: Any) -> None: ...

@type_check_only
class Service(Protocol):
    """What the engine asks of the service that answers in Python. `target`: the name of the one target."""

    @property
    def sessions(self) -> SessionTable: ...
    @property
    def target(self) -> str: ...
    @property
    def count(self) -> Callable[[Any, RequestTelemetry], None]: ...
    def owner_of(self, context: RequestContext) -> str: ...
    def event_fields(self, session_id: str | None) -> list[tuple[bytes, bytes]]:
        """Return the header of an answer that is a stream of events."""
    def lost_answer(self, raw_id: bytes | None, reason: str) -> bytes:
        """Return the event with the error that ends a stream without a response."""
    def agree(self, one: bytes | None, other: bytes | None) -> bool: ...

class DirectTarget:
    """A StreamableHTTP server: reached through `client` at `path`, with compiled policies that never wait."""

    def __init__(
        self, client: HttpClient, path: str, *, steps: tuple[Step, ...] = (), timeout_ms: int = 0
    ) -> None: ...

class DirectBackend(Backend):
    """Answers plain calls itself; `handler` gets the others, some of them with a call to the target begun."""

    def __init__(self, handler: HandlerBackend, target: DirectTarget, service: Service) -> None: ...
    @property
    def target(self) -> DirectTarget: ...

class DirectTimer(Timer):
    """C face only."""

class DirectCall(ClientCall):
    """One call in progress; a DirectBackend makes it."""

    @property
    def refusal(self) -> Reply | None:
        """The answer of a policy in front of the target, None where none refused."""
    @property
    def remaining_s(self) -> float | None:
        """What is left of the target's time, in seconds; None: there is no limit."""
    @property
    def context(self) -> RequestContext | None: ...
    @property
    def place(self) -> object: ...
    def route_labels(self) -> str: ...
    def add_log_field(self, key: str, value: object) -> None: ...
    def answer(self) -> Response:
        """Return the target's answer; raises CallError, TimeoutError, or what a policy raised."""
    def give_up(self) -> None:
        """End the call at the target, if it has not ended."""
    def client_writable(self) -> None: ...
    def client_gone(self) -> None: ...
