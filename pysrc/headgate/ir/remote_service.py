"""Services that policies call."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Endpoint
from headgate.ir.policies import NO_BACKEND_POLICIES, BackendPolicies


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteService:
    """A service that a policy calls: a host, a port of a service, or a named backend.

    `places` are (endpoint, weight) pairs. `policies` run on each call as on a request of its own.
    """

    kind: Literal["host", "service", "backend"]
    name: str
    port: int = 0
    places: tuple[tuple[Endpoint, int], ...] = ()
    policies: BackendPolicies = NO_BACKEND_POLICIES
