"""The OAuth documents of a backend's only server, forwarded unchanged if the gateway does not protect the backend
itself.

A server that is an OAuth resource responds 401 with the URL of its metadata, and clients look for the metadata at the
gateway's address (RFC 9728 section 3).
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from headgate.backend.contract import BackendCall
from headgate.backend.mcp.failure import McpFailure, TargetRefusal
from headgate.backend.mcp.front import check_local
from headgate.backend.mcp.http_service import NOT_RETURNED, edited, read, target_headers
from headgate.backend.mcp.targets.remote import ClientFields, Remote
from headgate.dialect import oauth
from headgate.dialect.mcp.jsonrpc import INTERNAL_ERROR

METHODS: Final = frozenset(("GET", "OPTIONS"))


class WellKnown:
    """`remote`: the connection to the server. `local_only`: admit requests from this machine only."""

    def __init__(self, remote: Remote, local_only: bool) -> None:
        self._remote = remote
        self._local_only = local_only

    @staticmethod
    def takes(call: BackendCall) -> bool:
        """Return True if a request is for such a document."""
        return call.method in METHODS and oauth.is_document(call.path)

    async def handle(self, call: BackendCall) -> None:
        """Return the server's response."""
        try:
            if self._local_only:
                check_local(call)
            await self._forward(call)
        except McpFailure as failure:
            status, headers, body = failure.answer(None)
            call.reply(status, headers, body, reason="MCP")
        except TargetRefusal as error:
            call.reply(error.status, error.fields, error.body, reason="MCP")

    async def _forward(self, call: BackendCall) -> None:
        fields = ClientFields(call.headers.items(), call.context)
        headers = target_headers(self._remote.policies, fields, call.headers.get("accept") or "*/*", None)
        try:
            async with asyncio.timeout(self._remote.timeout_s):
                response = await self._remote.request(call.method, call.target, headers, None, call.context)
                try:
                    body = await read(response)
                finally:
                    with contextlib.suppress(OSError):
                        await response.aclose()
        except TimeoutError:
            raise McpFailure(504, "upstream call timeout", INTERNAL_ERROR) from None
        except OSError as error:
            raise McpFailure(503, f"upstream call failed: {error}", INTERNAL_ERROR) from error
        returned = [(name, value) for name, value in response.headers if name.lower() not in NOT_RETURNED]
        call.reply(response.status, edited(returned, self._remote.policies.response_headers), body)
