"""Compiles listeners that carry no HTTP, or none that the gateway reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headgate.ir.backend import HostBackend, RouteBackend, ServiceBackend
from headgate.ir.bind import Bind
from headgate.ir.frontend import Frontend, ProxyProtocol
from headgate.ir.listener import Listener
from headgate.policy.environment import Environment
from headgate_engine.context.request import Reply
from headgate_engine.link.protocols import HTTP1, MIXED, TCP
from headgate_engine.link.proxy_header import ProxyRules
from headgate_engine.plan.plans import BackendPlan, RoutePlan
from headgate_engine.plan.step import Step
from headgate_engine.route.table import HostTable

CONNECT_MODES: Final = {"deny": 0, "route": 1, "tunnel": 2}


def gate(frontend: Frontend, environment: Environment) -> Step | None:
    """Return the rules and the service that each connection is asked about, None without any.

    Nobody sees an answer to those that are refused.
    """
    rules = None
    if frontend.network_authorization is not None:
        from headgate.policy.authorization import compile_authorization  # see pipeline.modules

        rules = compile_authorization(frontend.network_authorization, environment, Reply(403), "network")
    if frontend.network_ext_authz is None:
        return rules
    from headgate.policy.ext_authz.network import NetworkCheck
    from headgate_engine.steps.connection_check import ConnectionCheck

    return ConnectionCheck(rules, NetworkCheck(frontend.network_ext_authz, environment))


def proxy_rules(bind: Bind, frontend: Frontend) -> ProxyRules | None:
    """Return what is accepted of the PROXY protocol headers of a port, None where there are none."""
    accepted = frontend.proxy_protocol or (ProxyProtocol() if bind.proxied else None)
    if accepted is None:
        return None
    return ProxyRules(accepted.version != "v2", accepted.version != "v1", accepted.strict)


def connect_mode(bind: Bind, frontend: Frontend) -> int:
    """Return what a port does with CONNECT (plan.plans.ConnectMode)."""
    return CONNECT_MODES["tunnel" if bind.tunnels else frontend.connect]


def protocol_of(bind: Bind) -> str:
    """Return what the connections of a port speak (link.protocols)."""
    kinds = {listener.carries_http for listener in bind.listeners}
    if kinds == {False}:
        return TCP
    return HTTP1 if kinds <= {True} else MIXED


def protocol_with(backend: HostBackend | ServiceBackend) -> str:
    """Return what is spoken with a backend, as expressions and logs call it."""
    places = backend.endpoints if isinstance(backend, ServiceBackend) else (backend,)
    return "tcp" if any(place.endpoint.tcp for place in places) else "http"


def tcp_table(listener: Listener, plan_of: Callable[[RouteBackend], BackendPlan]) -> HostTable:
    """Return the routes of a listener by the name in the TLS handshake. plan_of compiles a choice of a route."""
    entries = []
    for route in listener.tcp_routes:
        backends = tuple(plan_of(choice) for choice in route.backends)
        weights = tuple(choice.weight for choice in route.backends)
        plan = RoutePlan(route.name, route.namespace, route.rule_name or "", backends, weights)
        plan.origin = route
        entries += [(name, plan) for name in route.hostnames or ("*",)]
    return HostTable(entries)
