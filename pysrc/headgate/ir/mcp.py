"""MCP backends with targets over stdio, Streamable HTTP or SSE, and HTTP services that are exposed as tools.

Source: https://modelcontextprotocol.io/specification/2025-06-18/basic/transports.
"""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret
from headgate.ir.endpoint import Endpoint
from headgate.ir.mcp_guardrails import GuardrailProcessor
from headgate.ir.policies import NO_BACKEND_POLICIES, BackendPolicies
from headgate.ir.policy.authorization import Authorization
from headgate.ir.policy.document_source import DocumentSource


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioTarget:
    """An MCP server as a child process that exchanges JSON-RPC messages in lines over stdin and stdout.

    Values of `env` are secrets. With `clear_env` the process does not inherit the gateway's environment. `key`
    identifies the command across reloads: sessions of an unchanged key are kept.
    """

    key: str
    name: str
    cmd: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, Secret], ...] = ()
    clear_env: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamableHttpTarget:
    """A remote server with the Streamable HTTP transport. `path` starts with a slash and may contain a query."""

    key: str
    name: str
    endpoint: Endpoint
    path: str = "/mcp"
    policies: BackendPolicies = NO_BACKEND_POLICIES


@dataclass(frozen=True, slots=True, kw_only=True)
class SseTarget:
    """A remote server with the HTTP+SSE transport of protocol version 2024-11-05.

    `path` serves the event stream, whose first event names the URL for POST requests.
    """

    key: str
    name: str
    endpoint: Endpoint
    path: str = "/sse"
    policies: BackendPolicies = NO_BACKEND_POLICIES


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApiTarget:
    """An HTTP service whose operations are exposed as tools. `schema` is its OpenAPI 3 document in JSON or YAML."""

    key: str
    name: str
    endpoint: Endpoint
    schema: DocumentSource
    policies: BackendPolicies = NO_BACKEND_POLICIES


RemoteTarget = StreamableHttpTarget | SseTarget | OpenApiTarget
McpTarget = StdioTarget | RemoteTarget
PrefixMode = Literal["conditional", "always", "never"]
FailureMode = Literal["failClosed", "failOpen"]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpBackend:
    """An MCP backend with one or more targets.

    `key` names the backend in logs and ties sessions to it across reloads; it changes with the targets and with the
    way their names are exposed. `prefix_mode` tells whether names are prefixed with their target; `conditional` does so
    only if there are several targets. `failure_mode` tells whether a session continues without a failed target.
    `rules` decide which client may use which tools, prompts, resources and tasks. `guardrails` are policy servers, in
    the order of their calls. With `stateless`, clients have no sessions. With `local_only`, only programs and web pages
    of this machine may send requests, as a defence against DNS rebinding.
    """

    key: str
    name: str
    targets: tuple[McpTarget, ...]
    prefix_mode: PrefixMode = "conditional"
    failure_mode: FailureMode = "failClosed"
    rules: Authorization | None = None
    guardrails: tuple[GuardrailProcessor, ...] = ()
    stateless: bool = False
    local_only: bool = False

    @property
    def bare(self) -> bool:
        """True if there is only one target, whose names and URIs are passed to clients unchanged."""
        return len(self.targets) == 1 and self.prefix_mode != "always"

    @property
    def plain(self) -> bool:
        """True if the messages of the only target are passed on without inspection."""
        kind = isinstance(self.targets[0], StdioTarget | StreamableHttpTarget)
        return self.bare and self.rules is None and not self.guardrails and kind

    @property
    def local(self) -> bool:
        """True if a session is bound to the worker that began it, because it has a process or an SSE stream."""
        return any(isinstance(target, StdioTarget | SseTarget) for target in self.targets)

    @property
    def owns_processes(self) -> bool:
        """True if each session has a process."""
        return any(isinstance(target, StdioTarget) for target in self.targets)

    @property
    def prefixed(self) -> bool:
        """True if names of tools and prompts are prefixed with the name of their target."""
        return self.prefix_mode == "always" or (len(self.targets) > 1 and self.prefix_mode == "conditional")
