"""MCP backends: one target, by stdio or by StreamableHTTP."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.document.secret import Secret
from headgate.ir.endpoint import Endpoint
from headgate.ir.policies import NO_BACKEND_POLICIES, BackendPolicies


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioTarget:
    """A process that speaks JSON-RPC lines. Values of `env` are secrets; `clear_env` starts from an empty
    environment.

    `key` identifies the command across reloads: sessions of an unchanged key live on.
    """

    key: str
    name: str
    cmd: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, Secret], ...] = ()
    clear_env: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamableHttpTarget:
    """A remote server. `path` starts with a slash and may hold a query."""

    key: str
    name: str
    endpoint: Endpoint
    path: str = "/mcp"
    policies: BackendPolicies = NO_BACKEND_POLICIES


McpTarget = StdioTarget | StreamableHttpTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class McpBackend:
    """`key` names the backend in logs and ties sessions to it across reloads; it changes with the target."""

    key: str
    name: str
    target: McpTarget
