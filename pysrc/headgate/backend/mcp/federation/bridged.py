"""A single target whose messages are forwarded unchanged, unless it has no sessions and the client needs one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headgate.backend.contract import BackendCall
from headgate.backend.mcp.federation.service import FederationService
from headgate.backend.mcp.front import McpService, needs_session
from headgate.dialect.mcp import bridging
from headgate.dialect.mcp.jsonrpc import RpcMessage


class Plain(McpService, Protocol):
    """A service that forwards messages unchanged."""

    async def open(self, call: BackendCall, message: RpcMessage, refused: Callable[[int, bytes], bool]) -> bool: ...


class BridgedService:
    """Chooses `plain` for a target with sessions, and `bridge` for one of revision 2026-07-28 (ModernLink)."""

    def __init__(self, plain: Plain, bridge: FederationService) -> None:
        self._plain = plain
        self._bridge = bridge

    def _of(self, session_id: str | None) -> McpService:
        ours = session_id is not None and session_id.startswith(self._bridge.sessions.id_prefix)
        return self._bridge if ours else self._plain

    async def post(self, call: BackendCall, message: RpcMessage, session_id: str | None) -> None:
        """Forward a message; the response to `initialize` reveals the revision of the target."""
        if session_id is not None or needs_session(message):
            await self._of(session_id).post(call, message, session_id)
        elif not await self._plain.open(call, message, bridging.has_no_sessions):
            await self._bridge.post(call, message, None)

    async def get(self, call: BackendCall, session_id: str | None) -> None:
        """Stream the target's unsolicited messages."""
        await self._of(session_id).get(call, session_id)

    async def delete(self, call: BackendCall, session_id: str | None) -> None:
        """End the session."""
        await self._of(session_id).delete(call, session_id)
