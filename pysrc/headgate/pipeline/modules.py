"""Determines from a configuration which modules its workers need.

Compiling imports them where it needs them. A template that has them already saves each worker the time, and the memory
of a copy; a worker that is running imports them in a thread before it compiles. A module that the table lacks holds the
loop of the worker when it is imported (tests/headgate/pipeline/test_modules.py looks for some).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import is_
from typing import Final

from headgate.document.hunks import hunks
from headgate.ir.backend import AgentRuntimeBackend, Backend, DynamicBackend, HostBackend, ServiceBackend, UiBackend
from headgate.ir.gateway import Gateway
from headgate.ir.mcp import McpBackend, OpenApiTarget, SseTarget
from headgate.ir.model import AiBackend, LlmRouter
from headgate.ir.policies import BackendPolicies, GatewayPolicies
from headgate.ir.route import Route

SEALS: Final = "cryptography.hazmat.primitives.ciphers.aead"
# What reads the hashes of passwords (headgate.crypto.htpasswd).
PASSWORDS: Final = (
    "passlib.context", "passlib.handlers.bcrypt", "passlib.handlers.des_crypt", "passlib.handlers.ldap_digests",
    "passlib.handlers.md5_crypt", "passlib.handlers.sha2_crypt",
)  # fmt: skip
# Fields of policies to what compiles them, and what that loads in turn.
OF_POLICY: Final[dict[str, tuple[str, ...]]] = {
    "cors": ("headgate.policy.cors",),
    "oidc": ("headgate.policy.oidc", SEALS),
    "jwt": ("headgate.policy.identity",),
    "mcp_auth": ("headgate.policy.mcp_authentication", SEALS),
    "basic": ("headgate.policy.identity", *PASSWORDS),
    "api_key": ("headgate.policy.identity",),
    "ext_authz": ("headgate.policy.ext_authz.compile",),
    "ext_proc": ("headgate.policy.ext_proc",),
    "inference": ("headgate.policy.inference_routing", "headgate.pipeline.destinations"),
    "local_rate_limits": (),
    "remote_rate_limit": ("headgate.policy.remote_rate_limit",),
    "authorization": ("headgate.policy.authorization",),
    "transformations": ("headgate.policy.transformation",),
    "buffer": ("headgate.policy.buffer",),
    "csrf": ("headgate.policy.csrf",),
    "usage_headers": ("headgate.policy.usage_headers",),
    "rewrite": ("headgate.policy.rewrite",),
    "redirect": ("headgate.policy.rewrite",),
    "delay": ("headgate.policy.delay",),
    "direct_response": ("headgate.policy.direct_response",),
    "mirrors": ("headgate.policy.mirror",),
    "auth": ("headgate.policy.backend_auth",),
    "health": ("headgate.policy.health",),
    "a2a": ("headgate_engine.a2a.backend",),
}
# How host names are written in a request.
NAMES: Final = "encodings.idna"
TLS: Final = "headgate.net.tls_library"
# Targets and models have credentials of their own.
CREDENTIALS: Final = "headgate.policy.backend_auth"
OF_LLM: Final = (
    "headgate.pipeline.llm", "headgate.backend.llm.guards.compile", "headgate.backend.llm.guards.step",
    "headgate.backend.llm.long_bodies", "headgate.backend.llm.off_loop", "headgate.dialect.llm.enrichment",
    "headgate_engine.steps.remote_limit", CREDENTIALS,
    NAMES, SEALS, TLS,
)  # fmt: skip
OF_BACKEND: Final[dict[type, tuple[str, ...]]] = {
    HostBackend: (NAMES,),
    ServiceBackend: (NAMES,),
    DynamicBackend: ("headgate.pipeline.destinations",),
    AgentRuntimeBackend: ("headgate_engine.aws.runtime", NAMES),
    McpBackend: ("headgate.pipeline.mcp", SEALS, CREDENTIALS, NAMES),
    AiBackend: OF_LLM,
    LlmRouter: OF_LLM,
}
OF_TARGET: Final[dict[type, str]] = {
    OpenApiTarget: "headgate.backend.mcp.targets.openapi",
    SseTarget: "headgate.backend.mcp.targets.sse",
}
# Where certificates of listeners come from.
OF_CERTIFICATES: Final = {"spiffe": "headgate.net.spiffe", "dynamicCa": "headgate.net.minting"}
OF_SEVERAL_CERTIFICATES: Final = "headgate.net.certificate_names"
# Traces, log records and metrics for a collector.
OF_EXPORTS: Final = ("headgate.policy.otlp.compile", "headgate_engine.link.grpc_call")
OF_METRICS: Final = "headgate.policy.otlp.metrics"
# Sessions that replicas have ended, and counters that they share, with the client of Redis.
OF_ENDED: Final = ("headgate.backend.mcp.ended", "redis.asyncio.connection")
OF_SHARED: Final = ("headgate.policy.shared.compile", "redis.asyncio.connection")
# Services that decide about connections, over HTTP and over gRPC.
OF_CONNECTIONS: Final = ("headgate.policy.ext_authz.network", "headgate.policy.ext_authz.network_grpc")
# Keys that are made at run time.
OF_VIRTUAL_KEYS: Final = (
    "headgate.pipeline.virtual_keys", "headgate.policy.virtual_keys", "headgate.backend.llm.realtime_limits",
)  # fmt: skip
OF_LEASES: Final = "headgate.policy.leases"
GUARDRAILS: Final = "headgate.pipeline.guardrails"
# RE2, for patterns of matches and expressions.
PATTERNS: Final = "re2"
# What a compiled expression is unpickled with, and what its patterns are compiled with.
OF_EXPRESSIONS: Final = ("headgate.expr.transport", PATTERNS)


def needed_modules(gateway: Gateway, before: Gateway | None = None) -> tuple[str, ...]:
    """Return the names, sorted. `before`: routes that this configuration has as well are not looked at."""
    known = {} if before is None else {one.key: one.routes for bind in before.binds for one in bind.listeners}
    # Most routes share their policies, and many their backends: each is looked at once.
    backends: dict[int, Backend] = {}
    policies: dict[int, GatewayPolicies | BackendPolicies] = {}
    patterns = False
    for bind in gateway.binds:
        for listener in bind.listeners:
            policies[id(listener.policies)] = listener.policies
            earlier = known.get(listener.key, ())
            changed = (listener.routes[hunk.j1 : hunk.j2] for hunk in hunks(earlier, listener.routes, is_))
            for route in chain.from_iterable(changed):
                patterns = patterns or has_pattern(route)
                policies[id(route.policies)] = route.policies
                for choice in route.backends:
                    backends[id(choice.backend)] = choice.backend
                    policies[id(choice.policies)] = choice.policies
    for backend in backends.values():
        for proxied in _proxies_of(backend):
            policies[id(proxied)] = proxied
    found: set[str] = set()
    fields = {name for one in policies.values() for name in OF_POLICY if getattr(one, name, None)}
    if gateway.process.shared_state is not None and "local_rate_limits" in fields:
        found.update(OF_SHARED)
    if gateway.frontend.metrics is not None:
        found.update((*OF_EXPORTS, OF_METRICS))
    for frontend in (gateway.frontend, *(bind.frontend for bind in gateway.binds if bind.frontend is not None)):
        if frontend.tracing is not None or frontend.access_log.otlp is not None:
            found.update(OF_EXPORTS)
        if frontend.network_authorization is not None:
            fields.add("authorization")
        if frontend.network_ext_authz is not None:
            found.update(OF_CONNECTIONS if frontend.network_ext_authz.http is None else OF_CONNECTIONS[:1])
    asked = (getattr(one, "api_key", None) for one in policies.values())
    if gateway.virtual_keys is not None or any(one is not None and one.virtual for one in asked):
        found.update(OF_VIRTUAL_KEYS)
        if gateway.virtual_keys is not None and gateway.virtual_keys.leases is not None:
            found.add(OF_LEASES)
    found.update(module for name in fields for module in OF_POLICY[name])
    found.update(module for kind in set(map(type, backends.values())) for module in OF_BACKEND.get(kind, ()))
    for backend in backends.values():
        if isinstance(backend, UiBackend) and backend.path is not None:
            found.update(OF_POLICY["rewrite"])
        if isinstance(backend, McpBackend):
            if gateway.process.shared_state is not None:
                found.update(OF_ENDED)
            found.update(OF_TARGET[type(target)] for target in backend.targets if type(target) in OF_TARGET)
            found.update((GUARDRAILS,) if backend.guardrails else ())
    found.update(_certificate_modules(gateway))
    if patterns:
        found.add(PATTERNS)
    if gateway.expressions:
        found.update(OF_EXPRESSIONS)
    return tuple(sorted(found))


def _certificate_modules(gateway: Gateway) -> Iterator[str]:
    """Yield what the certificates of listeners and backends need."""
    of_listeners = [one.tls for bind in gateway.binds for one in bind.listeners if one.tls is not None]
    for source in {one.source for one in of_listeners} & OF_CERTIFICATES.keys():
        yield OF_CERTIFICATES[source]
    if any(one.others for one in of_listeners):
        yield OF_SEVERAL_CERTIFICATES
    if gateway.spiffe:
        yield OF_CERTIFICATES["spiffe"]


def _proxies_of(backend: Backend) -> list[BackendPolicies]:
    """Return the policies of the proxies that a backend is reached through."""
    if isinstance(backend, ServiceBackend):
        places = [one.endpoint for one in backend.endpoints]
    else:
        places = [backend.endpoint] if isinstance(backend, HostBackend | DynamicBackend) else []
    found = []
    while places:
        tunnel = places.pop().tunnel
        if tunnel is not None:
            places += [one.endpoint for one in tunnel.proxies]
            found += [] if tunnel.policies is None else [tunnel.policies]
    return found


def has_pattern(route: Route) -> bool:
    """Tell whether a match of a route is a regular expression."""
    for match in route.matches:
        if match.path.kind == "regex":
            return True
        if (match.headers or match.query) and any(one.kind == "regex" for one in (*match.headers, *match.query)):
            return True
    return False
