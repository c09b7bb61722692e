"""Policy servers that see MCP requests and results."""

from __future__ import annotations

from typing import Final, Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.remote_service import RemoteService

Phase = Literal["off", "request", "response", "full"]
CHECK_REQUEST: Final = "/gateway.mcp.v1.ExtMcp/CheckRequest"
CHECK_RESPONSE: Final = "/gateway.mcp.v1.ExtMcp/CheckResponse"
DEFAULT_TIMEOUT_MS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailProcessor:
    """One policy server. `methods`: pattern (`tools/call`, `tools/*`, `*/list`, `*`) and phase, as written.

    `fail_open`: a server that fails counts as one that passes. `metadata`: name and expression. `allowed`: request
    fields that are told (empty: all, and the pseudo-fields), `disallowed`: those that never are; in lower case.
    `check_request`, `check_response`: full method paths.
    """

    service: RemoteService
    methods: tuple[tuple[str, Phase], ...] = ()
    fail_open: bool = False
    metadata: tuple[tuple[str, str], ...] = ()
    allowed: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    check_request: str = CHECK_REQUEST
    check_response: str = CHECK_RESPONSE
