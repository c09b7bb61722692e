"""MCP backends: targets by stdio, StreamableHTTP or SSE, and HTTP services as tools."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SseTarget:
    """A remote server of the transport of 2024-11-05: `path` gives the event stream, which tells where to post."""

    key: str
    name: str
    endpoint: Endpoint
    path: str = "/sse"
    policies: BackendPolicies = NO_BACKEND_POLICIES


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApiTarget:
    """An HTTP service whose operations are tools. `schema`: the document (OpenAPI 3), JSON or YAML."""

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
    """`key` names the backend in logs and ties sessions to it across reloads; it changes with the targets
    and the names of what they have.

    `prefix_mode`: whether names carry their target: `conditional` only where there are several. `failure_mode`: whether
    a session goes on without a target that fails. `rules`: which tools, prompts, resources
    and tasks there are for whom. `guardrails`: policy servers, in their order. `stateless`: no client has a session.
    `local_only`: requests are taken from programs and pages of this machine alone (DNS rebinding).
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
        """Whether there is one target, whose names and URIs are the client's."""
        return len(self.targets) == 1 and self.prefix_mode != "always"

    @property
    def plain(self) -> bool:
        """Whether the messages of the one target pass unread."""
        kind = isinstance(self.targets[0], StdioTarget | StreamableHttpTarget)
        return self.bare and self.rules is None and not self.guardrails and kind

    @property
    def local(self) -> bool:
        """Whether a session lives in the worker that began it: with a process, or a stream of answers."""
        return any(isinstance(target, StdioTarget | SseTarget) for target in self.targets)

    @property
    def prefixed(self) -> bool:
        """Whether names of tools and prompts carry their target."""
        return self.prefix_mode == "always" or (len(self.targets) > 1 and self.prefix_mode == "conditional")
