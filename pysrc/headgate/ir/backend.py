"""What a route forwards to."""

from __future__ import annotations

import os
from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Endpoint
from headgate.ir.mcp import McpBackend
from headgate.ir.model import AiBackend, LlmRouter
from headgate.ir.policies import NO_BACKEND_POLICIES, BackendPolicies


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBackend:
    """A fixed host. `name` is `<namespace>/<name>` for named backends, the address for inline ones."""

    key: str
    name: str
    endpoint: Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceEndpoint:
    """One workload that serves a port of a service. `key`: its uid."""

    key: str
    endpoint: Endpoint
    capacity: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceBackend:
    """A port of a service. `name` is `service/<namespace>/<hostname>:<port>`; `owner` is the identity of what is known
    of its endpoints, which all of its ports share.
    """

    key: str
    name: str
    owner: str
    hostname: str
    port: int
    endpoints: tuple[ServiceEndpoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingBackend:
    """A reference that leads nowhere: requests that pick it get 500 with `reason` (`backend does not
    exist`).
    """

    key: str
    name: str
    reason: str = "backend does not exist"


UiAccess = Literal["login", "named", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UiBackend:
    """The supervisor's admin page. `access`: who gets there: those who logged in; all, under a name that the listener
    or its certificate fixes (`named`); all, under any name, so that names must be looked at (`open`).
    """

    key: str = "internal/ui"
    name: str = "internal/ui"
    access: UiAccess = "open"

    def socket_path(self, folder: str) -> str:
        """Return where the supervisor answers; `folder`: what only the gateway's own user may enter."""
        return os.path.join(folder, f"ui-{self.access}.sock")


Backend = HostBackend | ServiceBackend | McpBackend | LlmRouter | AiBackend | MissingBackend | UiBackend


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteBackend:
    """One weighted choice. Weight 0 is never picked; `named` tells a reference from an inline backend.

    `policies` are merged: route, then named backend, then this reference, the last that sets a field wins.
    They are empty for MCP and AI backends and LLM routers, whose targets and models hold all of theirs themselves.
    """

    backend: Backend
    weight: int = 1
    named: bool = False
    policies: BackendPolicies = NO_BACKEND_POLICIES


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedBackend:
    """A `backends[]` entry with its own policies, for the dump."""

    name: str
    namespace: str
    backend: Backend
    policies: BackendPolicies = NO_BACKEND_POLICIES
