"""How a worker reaches proxies: the endpoints of a proxy service, whose state all workers share, and the requests for
tunnels, as the policies of the proxy make them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from headgate.document.lazy_dataclass import replace
from headgate.ir.endpoint import Proxy, ProxyTunnel
from headgate.net.dial import ProxySelector, SoleProxy
from headgate.net.tunnel import TunnelError
from headgate_engine.context.request import derived_context
from headgate_engine.link.endpoints import EndpointSet, EndpointState, HealthPlan
from headgate_engine.link.worker import Worker
from headgate_engine.plan.step import settle

if TYPE_CHECKING:
    from headgate.policy.environment import Environment
    from headgate_engine.plan.step import Step

# A credential for `authorization` goes to the proxy (RFC 9110 section 11.7.2): `authorization` is for the backend.
RENAMED: Final = {"authorization": "proxy-authorization"}
# A request for a tunnel has a host of its own, and no body.
LEFT_OUT: Final = frozenset(("host", "content-length", "transfer-encoding", "connection", "upgrade"))


class ServiceProxySelector:
    """The endpoints of a service, chosen like those of a backend: by capacity, health and latency."""

    def __init__(self, worker: Worker, tunnel: ProxyTunnel) -> None:
        self._proxies = {one.key: one for one in tunnel.proxies}
        owner = f"service/{tunnel.service}"
        shared, index = worker.segment, worker.index
        members = [
            EndpointState(shared, owner, key, one.endpoint.address.encode(), capacity=one.capacity, worker=index)
            for key, one in self._proxies.items()
        ]
        self._members = {one.key: one for one in members}
        self._set = EndpointSet(members, _health(tunnel))

    def next(self, avoid: Proxy | None) -> Proxy | None:
        """Return the endpoint of the next connection, None if there is none."""
        found = self._set.choose(None, None if avoid is None else self._members[avoid.key])
        return None if found is None else self._proxies[found.key]

    def note(self, proxy: Proxy, seconds: float) -> None:
        """Report the outcome of a connection to an endpoint: its duration in seconds, or a negative number for a
        failure."""
        self._set.note(self._members[proxy.key], seconds)


def _health(tunnel: ProxyTunnel) -> HealthPlan | None:
    if tunnel.policies is None or tunnel.policies.health is None:
        return None
    from headgate.policy.health import compile_health

    return compile_health(tunnel.policies.health, None, None)


def proxy_selector(worker: Worker, tunnel: ProxyTunnel) -> ProxySelector:
    """Return the selector of the endpoints of a proxy."""
    return ServiceProxySelector(worker, tunnel) if tunnel.service else SoleProxy(tunnel)


class WorkerProxies:
    """What pools know of proxies. It outlives configurations, as pools do.

    `steps`: what the policies of a tunnel, by its key, do to each request for one.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.steps: dict[str, tuple[Step, ...]] = {}

    def selector(self, tunnel: ProxyTunnel) -> ProxySelector:
        """Return the selector of the endpoints of a proxy."""
        return proxy_selector(self._worker, tunnel)

    async def fields(self, tunnel: ProxyTunnel, authority: str) -> Sequence[tuple[str, str]]:
        """Return the headers of a request for a tunnel to `authority`. Raises TunnelError if a policy refuses it."""
        steps = self.steps.get(tunnel.key)
        if steps is None:
            raise TunnelError("the policies of the proxy are no longer in force")
        context = derived_context(None, "CONNECT", authority, authority, ())
        for step in steps:
            reply = await settle(step, context)
            if reply is not None:
                from headgate.policy.remote import told  # few proxies have policies that refuse

                raise TunnelError(f"a policy of the proxy refuses the tunnel: {told(reply)}")
        if (context.method, context.target, context.authority) != ("CONNECT", authority, authority):
            raise TunnelError("a policy of the proxy names another destination than the backend")
        named = [(name.lower(), value) for name, value in context.request.items()]
        return [(RENAMED.get(name, name), value) for name, value in named if name not in LEFT_OUT]


class Proxies:
    """The proxies of one configuration. `access` is handed on to the next one."""

    def __init__(self, worker: Worker, previous: Proxies | None) -> None:
        self.access: WorkerProxies = WorkerProxies(worker) if previous is None else previous.access
        self._prepared: set[str] = set()

    def prepare(self, tunnel: ProxyTunnel | None, env: Environment | None) -> None:
        """Compile the policies of a proxy, and of those that it is reached through. Raises ValueError."""
        if tunnel is None:
            return
        for proxy in tunnel.proxies:
            self.prepare(proxy.endpoint.tunnel, env)
        key = tunnel.key if tunnel.policies is not None else ""
        if tunnel.policies is None or key in self._prepared:
            return
        assert env is not None
        assert env.steps_of_call is not None
        host = tunnel.service.partition("/")[2] or tunnel.proxies[0].endpoint.host
        asked = replace(tunnel.policies, health=None, request_timeout_ms=None)
        # What the previous configuration has compiled may use objects that end with it.
        self.access.steps[key] = env.steps_of_call(asked, host, env)
        self._prepared.add(key)

    def close_unused(self, current: Proxies) -> None:
        """Forget the policies that `current` has not compiled as well."""
        for key in self._prepared - current._prepared:
            self.access.steps.pop(key, None)
