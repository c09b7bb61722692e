from collections.abc import Callable
from typing import Any, Protocol, type_check_only

from headgate_engine.context.request import RequestContext
from headgate_engine.link.client import HttpClient
from headgate_engine.link.handler import HandlerBackend
from headgate_engine.mcp.meter import McpTargetMeter
from headgate_engine.mcp.sessions import SessionTable
from headgate_engine.mcp.telemetry import RequestTelemetry
from headgate_engine.plan.step import Step

@type_check_only
class Service(Protocol):
    """What the engine asks of the service that answers in Python. `target`: the name of the one target, None for
    several; `plain_fields`: the header of an answer that names no session, None where it is made for each.
    `keepalive_s`: after so many seconds without an answer the client gets a comment, 0 for never.
    """

    @property
    def sessions(self) -> SessionTable[Any]: ...
    @property
    def target(self) -> str | None: ...
    @property
    def count(self) -> Callable[[Any, RequestTelemetry], None]: ...
    @property
    def plain_fields(self) -> list[tuple[bytes, bytes]] | None: ...
    @property
    def keepalive_s(self) -> float: ...
    def owner_of(self, context: RequestContext) -> str: ...
    def event_fields(self, session_id: str | None) -> list[tuple[bytes, bytes]]:
        """Return the header of an answer that is a stream of events."""
    def lost_answer(self, raw_id: bytes | None, reason: str) -> bytes:
        """Return the event with the error that ends a stream without a response."""
    def agree(self, one: bytes | None, other: bytes | None) -> bool: ...

class DirectTarget:
    """A StreamableHTTP server: reached through `client` at `path`, with compiled policies that never wait. `timeout_ms`
    0: no limit. `meter` counts the calls.
    """

    def __init__(
        self,
        client: HttpClient,
        path: str,
        *,
        steps: tuple[Step, ...] = (),
        timeout_ms: int = 0,
        meter: McpTargetMeter | None = None,
    ) -> None: ...

class CallSettings:
    """What the calls of one backend have in common. `handler` takes over those that need Python; `federated`: each is
    one of several targets.
    """

    def __init__(self, handler: HandlerBackend, service: Service, federated: bool) -> None: ...
