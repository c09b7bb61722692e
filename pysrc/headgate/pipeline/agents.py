"""The engine's side of hosts, services and agent runtimes, which may be agents that speak A2A."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

from headgate.ir.backend import AgentRuntimeBackend, Backend, HostBackend, RouteBackend, ServiceBackend
from headgate.ir.endpoint import Endpoint
from headgate.ir.policy.inference_routing import InferenceRouting
from headgate.ir.policy.rewrite import Rewrite
from headgate.pipeline.replies import CARD_FAILED, reply_of
from headgate.pipeline.steps import INSPECTED_BYTES
from headgate.pipeline.tcp import protocol_with
from headgate_engine.link.backend import HOST, PoolBackend
from headgate_engine.plan.plans import Destination

if TYPE_CHECKING:
    from headgate_engine.link.dynamic import Destinations


def host_of(backend: Backend) -> str:
    """Return the host name of what a backend is, empty for those that are none."""
    match backend:
        case HostBackend() | AgentRuntimeBackend():
            return backend.endpoint.host
        case ServiceBackend():
            return backend.hostname
    return ""


def protocol_of(entry: RouteBackend) -> str:
    """Return what is spoken with a backend, as expressions and logs call it."""
    assert isinstance(entry.backend, HostBackend | ServiceBackend | AgentRuntimeBackend)
    found = "http" if isinstance(entry.backend, AgentRuntimeBackend) else protocol_with(entry.backend)
    return "a2a" if entry.policies.a2a and found == "http" else found


def destination_of(
    entry: RouteBackend, rewrite: Rewrite | None, limit: int, places: Callable[[str, Endpoint], Destinations]
) -> Destination:
    """Return what sends requests to a backend of a route that rewrites them so.

    limit: bytes of a body that is held. places(key, endpoint): pools of places that an endpoint picker names.
    """
    inner: PoolBackend = HOST
    if entry.policies.inference is not None:
        inner = _picked(entry.backend, entry.policies.inference, places)
    if isinstance(entry.backend, AgentRuntimeBackend):
        inner = _runtime(entry.backend, cards=entry.policies.a2a)
    if not entry.policies.a2a:
        return inner
    from headgate_engine.a2a.backend import A2aBackend

    prefix = None if rewrite is None or rewrite.path is None else rewrite.path.prefix
    replaced = None if prefix is None else f"/{prefix.removeprefix('/')}".encode()
    return A2aBackend(inner, limit=min(limit, INSPECTED_BYTES), failed=reply_of(CARD_FAILED), prefix=replaced)


def _runtime(backend: AgentRuntimeBackend, *, cards: bool) -> PoolBackend:
    from headgate_engine.aws.runtime import AgentRuntime

    path = f"/runtimes/{quote(backend.arn, safe='')}/invocations"
    query = "" if backend.qualifier is None else f"?qualifier={quote(backend.qualifier, safe='')}"
    return AgentRuntime(path.encode(), query.encode(), cards=cards)


def _picked(
    backend: Backend, routing: InferenceRouting, places: Callable[[str, Endpoint], Destinations]
) -> PoolBackend:
    """Return what sends requests to the endpoints that a service picks."""
    from headgate_engine.link.picked import PickedBackend

    if routing.validated:
        return PickedBackend()
    if isinstance(backend, ServiceBackend):
        pattern = backend.endpoints[0].endpoint if backend.endpoints else Endpoint(key=backend.key)
    else:
        assert isinstance(backend, HostBackend)
        pattern = backend.endpoint
    return PickedBackend(places(backend.key, pattern))
