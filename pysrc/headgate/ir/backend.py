"""Backends: the destinations of routes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Endpoint
from headgate.ir.mcp import McpBackend
from headgate.ir.model import AiBackend, LlmRouter
from headgate.ir.policies import NO_BACKEND_POLICIES, BackendPolicies


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBackend:
    """A fixed host. `name` is `<namespace>/<name>` of a named backend, or the address of an inline one."""

    key: str
    name: str
    endpoint: Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceEndpoint:
    """One workload that serves a port of a service. `key` is the uid of the workload, `capacity` its weight."""

    key: str
    endpoint: Endpoint
    capacity: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceBackend:
    """A port of a service. `name` is `service/<namespace>/<hostname>:<port>`.

    `owner` identifies the shared state of the endpoints (health, load), which is common to all ports of the service.
    `a2a` tells that the service says of the port that agents are behind it (`appProtocol`).
    """

    key: str
    name: str
    owner: str
    hostname: str
    port: int
    endpoints: tuple[ServiceEndpoint, ...]
    a2a: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRuntimeBackend:
    """An agent runtime of Amazon Bedrock AgentCore. `qualifier` names its endpoint or version; None means the default.

    Source: https://docs.aws.amazon.com/bedrock-agentcore/latest/APIReference/API_InvokeAgentRuntime.html.
    """

    key: str
    name: str
    endpoint: Endpoint
    arn: str
    qualifier: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingBackend:
    """A reference to a backend that does not exist. Requests for it get status 500 with `reason` as the text."""

    key: str
    name: str
    reason: str = "backend does not exist"


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationRules:
    """Which destinations clients may name.

    `hosts` are names, `*.suffix` and addresses; None means any. `ranges` are networks that may be reached although
    their addresses are special (private, loopback ...). `ports` are those that may be reached; empty means any.
    """

    hosts: tuple[str, ...] | None = None
    ranges: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicBackend:
    """A backend whose destination each request names: `target` is an expression for `host:port`, None the authority.

    `endpoint` has the connection settings of all destinations, and no host.
    """

    key: str
    name: str
    target: str | None
    rules: DestinationRules
    endpoint: Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBackend:
    """A route group: matching goes on in its routes, which are those of the listener whose `parent` is this `key`.

    Requests get status 404 if none of them matches. `known` is False if the file has no group of that `name`.
    """

    key: str
    name: str
    known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalBackend:
    """A bind of this process without a socket. `bind` is its key."""

    key: str
    name: str
    bind: str
    endpoint: Endpoint


UiAccess = Literal["login", "named", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UiBackend:
    """The supervisor's admin page and its API, served through a listener.

    `path`: where every request goes, with its own query; None: to its own path. `access` tells how the route is
    protected. `login`: only users who have logged in reach the page. `named`: everybody does, but the listener or its
    certificate fixes the host name. `open`: everybody does, under any host name, so the page must check host names
    itself.
    """

    key: str = "internal/ui"
    name: str = "internal/ui"
    access: UiAccess = "open"
    path: str | None = None

    def socket_path(self, folder: str) -> str:
        """Return the path of the supervisor's Unix socket in `folder`, which only the gateway's user may enter."""
        return os.path.join(folder, f"ui-{self.access}.sock")


Backend = (
    HostBackend
    | ServiceBackend
    | AgentRuntimeBackend
    | McpBackend
    | LlmRouter
    | AiBackend
    | DynamicBackend
    | MissingBackend
    | UiBackend
    | GroupBackend
    | InternalBackend
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteBackend:
    """One weighted backend of a route. Weight 0 is never picked. `named` is True for a reference to a named backend.

    `policies` are merged from the route, the named backend and this reference; the last one that sets a field wins.
    They are empty for MCP and AI backends and for LLM routers, whose targets and models hold their own policies.
    """

    backend: Backend
    weight: int = 1
    named: bool = False
    policies: BackendPolicies = NO_BACKEND_POLICIES


def uses_models(backends: Iterable[RouteBackend]) -> bool:
    """Return whether one of the backends calls models, whose answers report the tokens that they used."""
    return any(isinstance(one.backend, (AiBackend, LlmRouter)) for one in backends)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedBackend:
    """A `backends[]` entry with its own policies, for the configuration dump."""

    name: str
    namespace: str
    backend: Backend
    policies: BackendPolicies = NO_BACKEND_POLICIES
