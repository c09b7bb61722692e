"""One request while it is served, in the words of its revision."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

MODERN = "2026-07-28"
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN]
NAMESPACE = "io.modelcontextprotocol/"
METHOD_NOT_FOUND, INVALID_PARAMS = -32601, -32602
HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32020, -32021, -32022
STATUSES = {METHOD_NOT_FOUND: 404, INVALID_PARAMS: 400, HEADER_MISMATCH: 400, MISSING_CAPABILITY: 400,
            UNSUPPORTED_VERSION: 400}  # fmt: skip
CAPABILITY = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
Json = dict[str, Any]


class RpcError(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class InputRequired(Exception):
    """The client is to ask again, with what is wanted of it."""

    def __init__(self, requests: Json, state: str | None) -> None:
        super().__init__("input required")
        self.requests = requests
        self.state = state


@dataclass
class Peer:
    """The other side: `listeners` get what nobody asked for; `asks` are our requests that are not answered yet."""

    send: Callable[[Json], None] = lambda _message: None
    capabilities: Json = field(default_factory=dict)
    level: str | None = None
    subscribed: set[str] = field(default_factory=set)
    asks: dict[str, Any] = field(default_factory=dict)


@dataclass
class Exchange:
    """`emit` sends what belongs to the request; `hang_up` ends its stream without an answer."""

    peer: Peer
    params: Json
    modern: bool
    emit: Callable[[Json], None]
    hang_up: Callable[[], None] | None = None
    ask_client: Callable[[str, Json], Awaitable[Json]] | None = None
    numbers: Any = field(default_factory=itertools.count)

    @property
    def meta(self) -> Json:
        """`params._meta`."""
        return self.params.get("_meta") or {}

    @property
    def capabilities(self) -> Json:
        """What the client can do."""
        return self.meta.get(NAMESPACE + "clientCapabilities") or {} if self.modern else self.peer.capabilities

    @property
    def state(self) -> str | None:
        """What the server gave the client to bring back."""
        return self.params.get("requestState")

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification that belongs to the request."""
        self.emit({"jsonrpc": "2.0", "method": method, "params": params})

    def log(self, text: str) -> None:
        """Send a log message where the client wants some."""
        if not self.modern or self.meta.get(NAMESPACE + "logLevel"):
            self.notify("notifications/message", level="info", logger="conformant", data=text)

    async def ask(self, state: str | None = None, /, **wanted: tuple[str, Json]) -> Json:
        """Return the client's answers by key, asked for in the way of its revision."""
        for method, _ in wanted.values():
            name = CAPABILITY[method]
            if not self.modern and name not in self.capabilities:
                raise RpcError(INVALID_PARAMS, f"the client has no {name}")
        if not self.modern:
            assert self.ask_client is not None
            asking = (self.ask_client(method, params) for method, params in wanted.values())
            return dict(zip(wanted, await asyncio.gather(*asking), strict=True))
        given = self.params.get("inputResponses")
        if "inputResponses" in self.params and not isinstance(given, dict):
            raise RpcError(INVALID_PARAMS, "inputResponses is not an object")
        answers = {key: (given or {}).get(key) for key in wanted}
        if all(isinstance(one, dict) for one in answers.values()):
            return answers
        missing = {key: {"method": method, "params": params} for key, (method, params) in wanted.items()}
        raise InputRequired(missing, state)
