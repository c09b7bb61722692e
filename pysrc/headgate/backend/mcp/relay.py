"""Relays requests to the worker that owns their session, as HTTP over a Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

from headgate.backend.contract import BackendCall, UpstreamClient
from headgate.backend.mcp.failure import McpFailure, session_not_found
from headgate.backend.mcp.session import SessionIds
from headgate.dialect.mcp.jsonrpc import INTERNAL_ERROR, NotAMessage, RpcKind, error_message, parse
from headgate.dialect.mcp.versions import SESSION_HEADER
from headgate_engine.lazy_pattern import lazy_pattern
from headgate_engine.sse.encode import encode_event

BACKEND_HEADER = "x-gw-relay-backend"
IDENTITY_HEADER = "x-gw-relay-identity"
ADDRESSED_HEADER = "x-gw-relay-addressed"
# What policies of the route have set in `dynamic`.
RESULTS = ("extauthz", "extproc", "mcpGuardrails")
EVENT_END = b"\n\n"
TELL_SECONDS = 5.0
# Longest name of a tool, prompt or resource that the other worker is told.
MAX_NAME = 256
SOCKET = lazy_pattern(r"worker-(\d+)\.sock")


class RelayedTelemetry:
    """The telemetry of a relayed request. The worker that relays it counts and logs it, and is told in a header of the
    answer what only the owner of the session knows: what the request is addressed to."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def addressed(self, target: str, name: str | None, kind: str | None) -> None:
        """Tell the other worker. A request that asks several targets names none of them."""
        if self._context is not None:
            found = json.dumps([target, None if name is None else name[:MAX_NAME], kind])
            self._context.add_response_header(ADDRESSED_HEADER, found)
            self._context = None

    def ended(self, status: int, answer: bytes) -> None:
        """Let go of the request."""
        self._context = None


def relayed(call: BackendCall) -> bool:
    """Return True if another worker relayed the request."""
    return isinstance(getattr(call, "telemetry", None), RelayedTelemetry)


def take_addressed(call: BackendCall, headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Record what the owner of the session says that a request is addressed to; return the other fields."""
    from headgate.backend.mcp.request_telemetry import addressed  # every worker loads this module, and few relay

    for name, value in headers:
        if name.lower() == ADDRESSED_HEADER:
            target, subject, kind = json.loads(value)
            addressed(call, target, subject, kind or "")
    return [item for item in headers if item[0].lower() != ADDRESSED_HEADER]


def identity_of(call: BackendCall) -> list[object]:
    """Return the client's identity, the requested URL and what else expressions see, for the other worker.

    It needs them for rules, for `passthrough` and for the owner of the session.
    """
    from headgate.expr.portable import portable  # every worker loads this module, and few relay
    from headgate_engine.expr.views import origin_of

    context: Any = call.context
    if context is None:
        return [None, None, None, call.authority, call.secure, None, None, None, None]
    texts = [None if one is None else one.decode("latin-1") for one in (context.jwt_token, context.api_key_text)]
    results = {name: value for name, value in (context.dynamic or {}).items() if name in RESULTS}
    seen = portable([origin_of(context), context.metadata, results or None])
    caller = (context.jwt, context.api_key, context.basic_user)
    return [*caller, call.authority, call.secure, *texts, seen, context.own_request_id]


def broken_off(body: bytes, lasting: bool = False) -> bytes | None:
    """Return the error that ends a response whose worker has ended, None if the body is not a request.

    `lasting`: the session continues.
    """
    try:
        message = parse(body)
    except NotAMessage:
        return None
    if message.kind is not RpcKind.REQUEST:
        return None
    whose = "the session's worker" if lasting else "the session"
    reason = f"{whose} ended before its server answered"
    return error_message(message.raw_id, INTERNAL_ERROR, reason)


def socket_path(folder: str, index: int) -> str:
    """Return the path of the socket on which a worker receives relayed requests."""
    return os.path.join(folder, f"worker-{index}.sock")


def workers_in(folder: str) -> list[int]:
    """Return the indexes of the workers with such a socket."""
    found = (SOCKET.fullmatch(name) for name in os.listdir(folder))
    return [int(one[1]) for one in found if one is not None]


class Relay:
    """Sends requests to other workers.

    `index`: this worker. `ids`: finds the owner of a session. `client_of(index, lasting)`: returns a client for another
    worker, which waits for its restart if `lasting`. `others`: returns the indexes of the workers. `folder`: the folder
    of the sockets.
    """

    def __init__(
        self,
        index: int,
        ids: SessionIds,
        client_of: Callable[[int, bool], UpstreamClient],
        others: Callable[[], list[int]] = list,
        folder: str = "",
    ) -> None:
        self.index = index
        self.folder = folder
        self.ids = ids
        self._client_of = client_of
        self._others = others
        self._sealer = ids.sealer("relayed identity")

    def knows(self, index: int) -> bool:
        """Return True if there is another worker with this index."""
        return index != self.index and index in self._others()

    def restore(self, call: BackendCall) -> None:
        """Give a relayed request the identity that its client had at the receiving worker."""
        content = self._sealer.open(call.headers.get(IDENTITY_HEADER) or "")
        context: Any = call.context
        if content is not None and context is not None:
            context.jwt, context.api_key, context.basic_user, authority, context.secure, *more = json.loads(content)
            token, key = (None if one is None else str(one).encode("latin-1") for one in more[:2])
            context.jwt_token, context.api_key_text = token, key
            context.own_request_id = more[3]
            if more[2] is not None:
                from headgate.expr.portable import restored

                context.origin, context.metadata, context.dynamic = restored(more[2])
            context.request.set_request(call.method, call.target, authority)

    async def tell_ended(self, session_id: str, backend_key: str) -> None:
        """Tell the other workers that a resumable session has ended. A worker that does not respond has none."""

        async def tell(index: int) -> None:
            fields = [(SESSION_HEADER, session_id), (BACKEND_HEADER, backend_key.encode().hex())]
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(TELL_SECONDS):
                    response = await self._client_of(index, False).request("DELETE", "/", fields)
                    await response.aclose()

        await asyncio.gather(*(tell(index) for index in self._others() if index != self.index))

    async def forward(self, call: BackendCall, owner: int, backend_key: str, lasting: bool = False) -> None:
        """Relay a request to the owner of its session; without an owner, the session is gone.

        A `lasting` session continues in a successor of the owner. Raises McpFailure.
        """
        headers = [item for item in call.headers.items() if not item[0].lower().startswith("x-gw-relay-")]
        headers.append((BACKEND_HEADER, backend_key.encode().hex()))
        headers.append((IDENTITY_HEADER, self._sealer.seal(json.dumps(identity_of(call)).encode())))
        try:
            client = self._client_of(owner, lasting)
            response = await client.request(call.method, call.target, headers, call.body or None)
        except OSError as error:
            if not lasting:
                raise session_not_found() from None
            call.add_log_field("mcp.error.message", f"the session's worker ended: {error}")
            raise McpFailure(503, "the session's worker ended before its server answered", INTERNAL_ERROR) from None
        try:
            stream = call.stream(response.status, take_addressed(call, response.headers))
            tail = EVENT_END
            try:
                async for chunk in response:
                    tail = (tail + chunk)[-len(EVENT_END) :]
                    await stream.send(chunk)
            except ConnectionResetError:
                raise  # the client has disconnected
            except OSError as error:
                text = broken_off(call.body, lasting)
                if text is None or tail != EVENT_END:
                    raise
                call.add_log_field("mcp.error.message", f"the session's worker ended: {error}")
                await stream.send(encode_event(text, "message"))
            await stream.end()
        finally:
            with contextlib.suppress(OSError):
                await response.aclose()


class RelayEnd:
    """The receiving side: passes relayed requests to their backend."""

    def __init__(self, find: Callable[[str], Callable[[BackendCall], Awaitable[None]] | None], relay: Relay) -> None:
        self._find = find
        self._relay = relay

    async def handle(self, call: BackendCall) -> None:
        """Answer one relayed request."""
        key = bytes.fromhex(call.headers.get(BACKEND_HEADER) or "").decode()
        handle = self._find(key)
        if handle is None:
            call.reply(404, [("content-type", "text/plain")], b"mcp: session not found", reason="MCP")
        else:
            self._relay.restore(call)
            call.telemetry = RelayedTelemetry(call.context)
            await handle(call)
