from collections.abc import Callable
from typing import Any

from headgate_engine.peek.rpc import RpcMessage
from headgate_engine.shared.segment import Segment

KINDS: dict[str, str]
NAME_FIELDS: dict[str, str]
ARGUMENTS: frozenset[str]
MESSAGE: str
SESSION_LETTERS: int
MAX_TEXT: int
ONE_EVENT: bytes
UNKNOWN: str
OTHER: str
MAX_NAMES: int
MAX_NAME: int
MAX_COUNTERS: int

def logged_session_id(session_id: str) -> str:
    """Return what logs tell of a session id."""

class RequestCounts:
    """Counts the requests of one backend in one worker: `count` of RequestTelemetry. `methods`: those that have a label
    value of their own. A subclass gives the keys of series.
    """

    def __init__(self, segment: Segment, methods: frozenset[str]) -> None: ...
    @property
    def segment(self) -> Segment: ...
    def __call__(self, call: Any, telemetry: RequestTelemetry) -> None:
        """Count a request that has ended. `call` has `place`, and `route_labels()` for a new series."""

class RequestTelemetry:
    """One request with a method. `server`: the only target there is, None where it is one of several; `count` is called
    once, when the request has ended.
    """

    def __init__(
        self,
        call: Any,
        message: RpcMessage,
        session_id: str | None,
        server: str | None,
        count: Callable[[Any, RequestTelemetry], None],
    ) -> None: ...
    @property
    def method(self) -> str: ...
    @property
    def kind(self) -> str | None: ...
    @property
    def server(self) -> str | None: ...
    @property
    def name(self) -> str | None: ...
    @property
    def session_id(self) -> str | None: ...
    @property
    def failed(self) -> bool: ...
    @property
    def message(self) -> RpcMessage: ...
    @property
    def answer(self) -> bytes: ...
    def addressed(self, target: str, name: str | None, kind: str | None) -> None:
        """Tell whose the request is and what it is about, by the name that the target knows."""
    def ended(self, status: int, answer: bytes) -> None:
        """Tell how it ended; only the first time counts. `status` 0: the client did not wait for it.

        `answer`: the body, or the last events of a stream, its response last.
        """

class ExpressionView:
    """`mcp` as expressions see it, made when they ask."""

    def __init__(self, telemetry: RequestTelemetry) -> None: ...
    def __contains__(self, field: object, /) -> bool: ...
    def __getitem__(self, field: str, /) -> Any: ...

def response_in(answer: bytes) -> bytes:
    """Return the last message of an answer: a body of JSON, or whole events."""

def error_in(text: bytes) -> dict[str, Any] | None:
    """Return the error of a response; None when it is none."""

def decoded(text: bytes) -> dict[str, Any]:
    """Return a message as objects, {} when it is none."""
