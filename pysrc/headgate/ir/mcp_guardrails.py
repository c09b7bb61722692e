"""Policy servers that check MCP requests and results."""

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
    """One policy server.

    `methods` are (pattern, phase) pairs as configured, with patterns such as `tools/call`, `tools/*`, `*/list` or `*`.
    With `fail_open`, a message passes if the server fails. `metadata` are (name, expression) pairs. `allowed` names the
    request headers that are sent to the server (empty: all of them and the pseudo-headers), `disallowed` those that are
    never sent; both in lower case. `check_request` and `check_response` are full gRPC method paths.
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
