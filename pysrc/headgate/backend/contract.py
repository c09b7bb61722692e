"""The interfaces between the engine and backends in Python."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Protocol


class RequestHeaders(Protocol):
    """Request fields."""

    def get(self, name: str, default: str | None = None) -> str | None: ...
    def items(self) -> list[tuple[str, str]]: ...


class ResponseStream(Protocol):
    """The body of a streamed response. send() waits for a slow client. Both methods raise ConnectionResetError if the
    client has gone."""

    async def send(self, data: bytes) -> None: ...
    async def end(self) -> None: ...


class Identity(Protocol):
    """The identity of the client as verified by policies. Expressions can read it."""

    jwt: dict[str, Any] | None
    jwt_token: bytes | None
    api_key: dict[str, Any] | None
    api_key_text: bytes | None
    basic_user: str | None
    dynamic: dict[str, Any] | None
    secure: bool

    @property
    def request(self) -> Any: ...


class BegunCall(Protocol):
    """A call to a target that the engine has begun (headgate_engine.mcp.direct). `refusal`: the response of a policy in
    front of the target. `remaining_s`: seconds until its deadline, None without one. `waited_s`: seconds since its
    start. After `wait_for_head`, `answer()` returns the response or raises OSError, TimeoutError, or the exception of a
    policy.
    """

    @property
    def refusal(self) -> Any: ...
    @property
    def remaining_s(self) -> float | None: ...
    @property
    def waited_s(self) -> float: ...
    async def wait_for_head(self) -> None: ...
    def answer(self) -> UpstreamResponse: ...
    def give_up(self) -> None: ...


class BackendCall(Protocol):
    """One request with its whole body. The task that handles it is cancelled when the client goes away."""

    @property
    def method(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def authority(self) -> str: ...
    @property
    def secure(self) -> bool: ...
    @property
    def body(self) -> bytes: ...
    @property
    def headers(self) -> RequestHeaders: ...
    @property
    def context(self) -> Any: ...
    @property
    def place(self) -> object: ...
    telemetry: Any
    begun: BegunCall | None
    task: Any
    @property
    def gone(self) -> bool: ...
    def route_labels(self) -> str: ...
    def add_log_field(self, key: str, value: object) -> None: ...
    def reply(
        self,
        status: int,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
        reason: str | None = None,
    ) -> None: ...
    def stream(self, status: int, headers: Iterable[tuple[str, str]] = ()) -> ResponseStream: ...


class UpstreamResponse(Protocol):
    """The answer to an HTTP call."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> list[tuple[str, str]]: ...
    def header(self, name: str) -> str | None: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def read(self, limit: int) -> bytes:
        """Return the whole body. Raises OSError where it is longer than `limit` bytes."""
        ...

    async def aclose(self) -> None: ...


class UpstreamClient(Protocol):
    """Calls one destination. Raises OSError if a call fails."""

    async def request(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes | None = None,
        authority: str | None = None,
    ) -> UpstreamResponse: ...
