"""Requests for sessions that another worker owns go to it over a Unix socket, as HTTP."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Awaitable, Callable

from headgate.backend.contract import Call, HttpClient, Identity
from headgate.backend.mcp.failure import session_not_found
from headgate.backend.mcp.session import SessionIds

BACKEND_HEADER = "x-gw-relay-backend"
IDENTITY_HEADER = "x-gw-relay-identity"


def identity_of(call: Call) -> list[object]:
    """Return what policies found out of who asks and what was asked for, for expressions at the other worker."""
    context: Identity | None = call.context
    found: list[object] = [None] * 3 if context is None else [context.jwt, context.api_key, context.basic_user]
    return [*found, call.authority, call.secure]


def socket_path(folder: str, index: int) -> str:
    """Return where a worker takes relayed requests."""
    return os.path.join(folder, f"worker-{index}.sock")


class Relay:
    """`index` is this worker, `ids` tells whose a session is, `client_of` gives a client for another worker."""

    def __init__(self, index: int, ids: SessionIds, client_of: Callable[[int], HttpClient]) -> None:
        self.index = index
        self.ids = ids
        self._client_of = client_of
        self._sealer = ids.sealer("relayed identity")

    def restore(self, call: Call) -> None:
        """Give a relayed request the identity that it had where it came in."""
        content = self._sealer.open(call.headers.get(IDENTITY_HEADER) or "")
        context: Identity | None = call.context
        if content is not None and context is not None:
            context.jwt, context.api_key, context.basic_user, authority, context.secure = json.loads(content)
            context.request.set_request(call.method, call.target, authority)

    async def forward(self, call: Call, owner: int, backend_key: str) -> None:
        """Have the owner answer; without one the session is gone."""
        headers = [item for item in call.headers.items() if not item[0].lower().startswith("x-gw-relay-")]
        headers.append((BACKEND_HEADER, backend_key.encode().hex()))
        headers.append((IDENTITY_HEADER, self._sealer.seal(json.dumps(identity_of(call)).encode())))
        try:
            response = await self._client_of(owner).request(call.method, call.target, headers, call.body or None)
        except OSError:
            raise session_not_found() from None
        try:
            stream = call.stream(response.status, response.headers)
            async for chunk in response:
                await stream.send(chunk)
            await stream.end()
        finally:
            with contextlib.suppress(OSError):
                await response.aclose()


class RelayEnd:
    """The receiving side: finds the backend and lets it answer."""

    def __init__(self, find: Callable[[str], Callable[[Call], Awaitable[None]] | None], relay: Relay) -> None:
        self._find = find
        self._relay = relay

    async def handle(self, call: Call) -> None:
        """Answer one relayed request."""
        key = bytes.fromhex(call.headers.get(BACKEND_HEADER) or "").decode()
        handle = self._find(key)
        if handle is None:
            call.reply(404, [("content-type", "text/plain")], b"mcp: session not found", reason="MCP")
        else:
            self._relay.restore(call)
            await handle(call)
