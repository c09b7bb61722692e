"""Requests for sessions that another worker owns go to it over a Unix socket, as HTTP."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Awaitable, Callable

from headgate.backend.contract import Call, HttpClient
from headgate.backend.mcp.failure import session_not_found
from headgate.backend.mcp.session import SessionIds

BACKEND_HEADER = "x-gw-relay-backend"


def socket_path(folder: str, index: int) -> str:
    """Return where a worker takes relayed requests."""
    return os.path.join(folder, f"worker-{index}.sock")


class Relay:
    """`index` is this worker, `ids` tells whose a session is, `client_of` gives a client for another worker."""

    def __init__(self, index: int, ids: SessionIds, client_of: Callable[[int], HttpClient]) -> None:
        self.index = index
        self.ids = ids
        self._client_of = client_of

    async def forward(self, call: Call, owner: int, backend_key: str) -> None:
        """Have the owner answer; without one the session is gone."""
        headers = [item for item in call.headers.items() if not item[0].lower().startswith("x-gw-relay-")]
        headers.append((BACKEND_HEADER, backend_key.encode().hex()))
        try:
            response = await self._client_of(owner).request(call.method, "/", headers, call.body or None)
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

    def __init__(self, find: Callable[[str], Callable[[Call], Awaitable[None]] | None]) -> None:
        self._find = find

    async def handle(self, call: Call) -> None:
        """Answer one relayed request."""
        key = bytes.fromhex(call.headers.get(BACKEND_HEADER) or "").decode()
        handle = self._find(key)
        if handle is None:
            call.reply(404, [("content-type", "text/plain")], b"mcp: session not found", reason="MCP")
        else:
            await handle(call)
