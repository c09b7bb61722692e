"""The IR as the JSON of `/config_dump`: stable order, secrets as `<redacted>`, absent fields left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from headgate.config import agent_runtime, dump_routes
from headgate.config import dump_discovery as discovery
from headgate.config import dump_llm as llm
from headgate.config import dump_process as process
from headgate.config.concealed import Concealer
from headgate.config.dump_policies import INLINE, backend_policies, endpoint, keepalives, target_policy
from headgate.config.dump_process import duration
from headgate.config.policy import authorization, document_source, ext_authz, mcp_guardrails, otlp
from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import REDACTED
from headgate.ir.backend import (
    AgentRuntimeBackend,
    Backend,
    DynamicBackend,
    GroupBackend,
    HostBackend,
    InternalBackend,
    MissingBackend,
    NamedBackend,
    ServiceBackend,
    UiBackend,
)
from headgate.ir.bind import Bind
from headgate.ir.frontend import STALL_TIMEOUT_MS, AccessLog, Frontend
from headgate.ir.gateway import Gateway
from headgate.ir.listener import Listener
from headgate.ir.mcp import McpBackend, McpTarget, OpenApiTarget, SseTarget, StdioTarget, StreamableHttpTarget
from headgate.ir.model import AiBackend, LlmModel, LlmProvider, LlmRouter
from headgate.ir.tcp_route import TcpRoute
from headgate.ir.tls import ServerTls

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Run-time values in the dump. `generation` counts applied configurations from 1."""

    generation: int
    workers: int
    started_unix_s: int = 0
    build: Mapping[str, str] = field(default_factory=dict)
    # What is known of an endpoint (link.endpoints.Endpoint.snapshot()), by owner and key; None: nothing is.
    endpoint: Callable[[str, str], Mapping[str, Any] | None] = lambda _owner, _key: None


def _tcp_route(route: TcpRoute) -> Json:
    found: Json = {"key": route.key, "name": route.name, "namespace": route.namespace}
    if route.rule_name is not None:
        found["ruleName"] = route.rule_name
    if route.hostnames:
        found["hostnames"] = list(route.hostnames)
    return found | {"backends": [dump_routes.reference(choice) for choice in route.backends]}


def _certificate_source(tls: ServerTls) -> str:
    return "spiffe" if tls.source == "spiffe" else tls.cert_file or INLINE


def _listener(listener: Listener) -> Json:
    protocol: Any = listener.protocol
    if listener.tls is not None:
        least, most = listener.tls.versions
        source = _certificate_source(listener.tls)
        shown: Json = {"certificateSource": source, "minTlsVersion": least, "maxTlsVersion": most}
        if listener.tls.source == "dynamicCa":
            shown["mode"] = "dynamicCa"
        if listener.tls.others:
            shown["moreCertificates"] = [one.cert_file or INLINE for one in listener.tls.others]
        if listener.tls.suites:
            shown["cipherSuites"] = list(listener.tls.suites)
        if listener.tls.groups:
            shown["keyExchangeGroups"] = list(listener.tls.groups)
        if listener.tls.alpn is not None:
            shown["alpn"] = [name.decode("latin-1") for name in listener.tls.alpn]
        if listener.tls.root_pem is not None:
            shown["root"] = listener.tls.root_file or INLINE
        if listener.tls.strangers:
            shown["clientValidation"] = "allowInsecureFallback"
        protocol = {listener.protocol: shown}
    own = dump_routes.in_order(listener.routes)
    found: Json = {
        "key": listener.key,
        "gatewayName": listener.gateway_name,
        "gatewayNamespace": listener.gateway_namespace,
        "listenerName": listener.name,
        "hostname": listener.hostname or "",
        "protocol": protocol,
        "routes": {one.key: dump_routes.route(one, listener.key) for one in own if not one.parent},
    }
    if not listener.carries_http:
        routes = sorted(listener.tcp_routes, key=lambda one: one.key)
        found["tcpRoutes"] = {route.key: _tcp_route(route) for route in routes}
    return found


def _tunnel_protocol(bind: Bind) -> str:
    if bind.hbone is not None:
        return "hboneGateway"
    return "proxy" if bind.proxied else "connect" if bind.tunnels else "direct"


def _bind(bind: Bind) -> Json:
    return {
        "key": bind.key,
        "address": bind.address,
        "protocol": "tls" if bind.tls else "http" if all(one.carries_http for one in bind.listeners) else "tcp",
        "tunnelProtocol": _tunnel_protocol(bind),
        "mode": "internal" if bind.internal else "standard",
        "listeners": {one.key: _listener(one) for one in sorted(bind.listeners, key=lambda one: one.key)},
    }


def _mcp_target(target: McpTarget) -> Json:
    if isinstance(target, StdioTarget):
        return {
            "name": target.name,
            "stdio": {
                "cmd": target.cmd,
                "args": list(target.args),
                "env": {name: REDACTED for name, _ in sorted(target.env)},
                "clearEnv": target.clear_env,
            },
        }
    place = {"host": target.endpoint.host, "port": target.endpoint.port}
    match target:
        case StreamableHttpTarget(path=path):
            kind: Json = {"mcp": {**place, "path": path}}
        case SseTarget(path=path):
            kind = {"sse": {**place, "path": path}}
        case OpenApiTarget(schema=schema):
            kind = {"openapi": {**place, "schema": document_source.dump(schema)}}
    return {
        "name": target.name,
        **kind,
        "policies": endpoint(target.endpoint) + backend_policies(target.policies),
    }


def _mcp(backend: McpBackend) -> Json:
    return {
        "statefulMode": "stateless" if backend.stateless else "stateful",
        "prefixMode": backend.prefix_mode,
        "failureMode": backend.failure_mode,
        **({"dnsRebindingProtection": True} if backend.local_only else {}),
        **({} if backend.rules is None else {"mcpAuthorization": authorization.dump(backend.rules)}),
        **({} if not backend.guardrails else {"mcpGuardrails": mcp_guardrails.dump(backend.guardrails)}),
        "targets": [_mcp_target(target) for target in backend.targets],
    }


def _backend(backend: Backend, namespace: str, name: str, runtime: Runtime) -> Json:
    common: Json = {"name": name, "namespace": namespace}
    match backend:
        case HostBackend():
            return {"host": {**common, "target": backend.endpoint.address}}
        case ServiceBackend():
            return {"service": {**common, "target": backend.hostname}}
        case AgentRuntimeBackend():
            return {"aws": {**common, "target": agent_runtime.dump(backend)}}
        case McpBackend():
            return {"mcp": {**common, "target": _mcp(backend)}}
        case LlmRouter():
            return {"llmRouter": {**common, "target": llm.router(backend)}}
        case AiBackend():
            return _providers(common, backend.groups, runtime)
        case DynamicBackend():
            return {"dynamic": {**common, **dump_routes.dynamic(backend)}}
        case MissingBackend():
            return {"invalid": common}
        case GroupBackend():
            return {"invalid": common}
        case InternalBackend():
            return {"internal": {**common, "target": backend.bind}}
        case UiBackend():
            return {"internal": {**common, "target": backend.path or "admin"}}


def _providers(common: Json, groups: tuple[tuple[LlmModel, ...], ...], runtime: Runtime) -> Json:
    """Return the providers of a model by priority, with their state."""
    shown = [discovery.group({_name(model): _member(model, runtime) for model in group}) for group in groups]
    return {"ai": {**common, "target": {"providers": shown}}}


def _name(model: LlmModel) -> str:
    return model.key.rpartition("/")[2]


def _member(model: LlmModel, runtime: Runtime) -> tuple[Json, int, Mapping[str, Any] | None]:
    return _ai(model), 1, runtime.endpoint(f"llm/{model.key}", model.provider.endpoint.address)


def _with_state(shown: Json, named: NamedBackend, runtime: Runtime) -> Json:
    """Return the entry of a host with a health policy, together with its state."""
    backend = named.backend
    if isinstance(backend, HostBackend) and (named.policies.health is not None or named.policies.affinity is not None):
        address = backend.endpoint.address
        state = runtime.endpoint(f"host/{backend.name}", address)
        shown["host"]["endpoints"] = [discovery.group({address: ({"address": address}, 1, state)})]
    return shown


def _provider(provider: LlmProvider) -> Json:
    found: Json = {
        "name": provider.kind,
        "host": provider.endpoint.address,
        "pathPrefix": provider.path_prefix,
    }
    if provider.path_override is not None:
        found["pathOverride"] = provider.path_override
    found["formats"] = [
        {"type": one.type} if one.path is None else {"type": one.type, "path": one.path}
        for one in provider.formats
    ]
    return found


def _ai(model: LlmModel) -> Json:
    return {
        "name": _name(model),
        "provider": _provider(model.provider),
        **({"tokenize": True} if model.tokenize else {}),
        "policies": llm.edits(model.edits) | ({} if model.pinned_model is None else {"model": model.pinned_model}),
        "backendPolicies": endpoint(model.provider.endpoint) + backend_policies(model.policies),
    }


def _model(listener: str, router: LlmRouter, model: LlmModel, runtime: Runtime) -> Json:
    concrete: Json = {
        "name": model.pattern,
        "created": runtime.started_unix_s,
        "visibility": "internal" if model in router.internal_models else "public",
        **llm.conditions(model),
        **({"tokenize": True} if model.tokenize else {}),
        "backend": {"weight": 1, "backend": f"/{model.key}"},
        "policies": llm.edits(model.edits) | ({} if model.pinned_model is None else {"model": model.pinned_model}),
        "backendPolicies": endpoint(model.provider.endpoint) + backend_policies(model.policies),
    }
    kind = {"concrete": concrete}
    return {
        "listenerKey": listener,
        "key": f"{listener}/{model.key}",
        "name": model.pattern,
        "routerKey": router.key,
        "kind": kind,
    }


def _access_log(log: AccessLog) -> Json:
    found: Json = {"remove": list(log.remove)}
    if log.add:
        found["add"] = dict(log.add)
    if log.filter is not None:
        found["filter"] = log.filter
    if log.database_add or log.database_full:
        found["database"] = {"llm": "full" if log.database_full else "metadata", "add": dict(log.database_add)}
    if log.otlp is not None:
        found["otlp"] = otlp.dump_log(log.otlp)
    return found


def frontend_policies(frontend: Frontend) -> Json:
    """Return the policies of ports by kind."""
    rules, proxied, asked = frontend.network_authorization, frontend.proxy_protocol, frontend.network_ext_authz
    http: Json = {
        "maxBufferSize": frontend.max_buffer_bytes,
        "http1IdleTimeout": duration(frontend.http1_idle_timeout_ms),
    }
    if frontend.keeps_header_case:
        http["http1HeaderCase"] = "preserve"
    if frontend.keeps_underscores:
        http["headersWithUnderscores"] = "keep"
    if frontend.path_normalization != "resolve":
        http["pathNormalization"] = frontend.path_normalization
    if frontend.max_model_response_bytes is not None:
        http["maxModelResponseSize"] = frontend.max_model_response_bytes
    if frontend.http1_max_headers is not None:
        http["http1MaxHeaders"] = frontend.http1_max_headers
    for name, size in (
        ("http2WindowSize", frontend.http2_window),
        ("http2ConnectionWindowSize", frontend.http2_connection_window),
        ("http2FrameSize", frontend.http2_frame),
        ("http2MaxHeaderSize", frontend.http2_max_header),
        ("http2MaxHeaders", frontend.http2_max_fields),
        ("http2MaxConcurrentStreams", frontend.http2_streams),
        ("http2MaxContinuations", frontend.http2_continuations),
        ("http2MaxResets", frontend.http2_resets),
        ("http2MaxControlFrames", frontend.http2_control_frames),
    ):
        if size is not None:
            http[name] = size
    if frontend.request_ids != "off":
        http["requestId"] = frontend.request_ids
    if frontend.http2_keepalive_ms is not None:
        http["http2KeepaliveInterval"] = duration(frontend.http2_keepalive_ms)
        http["http2KeepaliveTimeout"] = duration(frontend.http2_keepalive_timeout_ms)
    if frontend.stall_timeout_ms != STALL_TIMEOUT_MS:
        http["stallTimeout"] = duration(frontend.stall_timeout_ms)
    if frontend.max_connection_duration_ms is not None:
        http["maxConnectionDuration"] = duration(frontend.max_connection_duration_ms)
    return {
        "accessLog": _access_log(frontend.access_log),
        "http": http,
        "tls": {"handshakeTimeout": duration(frontend.tls_handshake_timeout_ms)},
        "tcp": {"keepalives": keepalives(frontend.keepalives)},
        **({} if frontend.tracing is None else {"tracing": otlp.dump_tracing(frontend.tracing)}),
        **({} if rules is None else {"networkAuthorization": authorization.dump(rules)}),
        **({} if asked is None else {"networkExtAuthz": ext_authz.dump((asked,))}),
        **({} if frontend.connect == "deny" else {"connect": {"mode": frontend.connect}}),
        **({} if proxied is None else {"proxyProtocol": {
            "version": proxied.version, "mode": "strict" if proxied.strict else "optional",
        }}),
    }


def _frontend(gateway: Gateway) -> list[Json]:
    target: Json = {"gatewayName": "default", "gatewayNamespace": "default", "listenerName": None}
    shown = frontend_policies(gateway.frontend)
    places = [("", {"gateway": target}, shown)]
    for bind in gateway.binds:
        if bind.frontend is not None:
            own = {kind: said for kind, said in frontend_policies(bind.frontend).items() if shown.get(kind) != said}
            places.append((f":{bind.port}", {"gateway": target | {"port": bind.port}}, own))
    return [
        {"key": f"frontend/{kind}{mark}", "name": None, "target": at, "policy": {"frontend": {kind: value}}}
        for mark, at, policies in places
        for kind, value in policies.items()
    ]


def dump(gateway: Gateway, runtime: Runtime) -> Json:
    """Return the dump as plain JSON values; two dumps of one state are equal byte for byte when printed
    alike.
    """
    return dict(Concealer(gateway.process.sensitive_headers).shown(_document(gateway, runtime)))


def hidden_texts(gateway: Gateway) -> frozenset[str]:
    """Return the texts that a dump redacts because of their field names."""
    concealer = Concealer(gateway.process.sensitive_headers)
    concealer.shown(_document(gateway, Runtime(generation=0, workers=0)))
    return frozenset(concealer.hidden)


def _virtual_keys(gateway: Gateway) -> Json:
    if gateway.virtual_keys is None:
        return {}
    from headgate.config import virtual_keys  # as in what reads them

    return {"virtualKeys": virtual_keys.dump(gateway.virtual_keys)}


def _document(gateway: Gateway, runtime: Runtime) -> Json:
    backends = {
        f"{one.namespace}/{one.name}": {
            "backend": _with_state(_backend(one.backend, one.namespace, one.name, runtime), one, runtime),
            "inlinePolicies": backend_policies(one.policies),
        }
        for one in gateway.backends
    }
    models: dict[str, Json] = {}
    for bind in gateway.binds:
        for listener in bind.listeners:
            for choice in (choice for route in listener.routes for choice in route.backends):
                backend = choice.backend
                if isinstance(backend, LlmRouter | AiBackend | McpBackend | UiBackend) and not choice.named:
                    backends[f"/{backend.name}"] = {
                        "backend": _backend(backend, "", backend.name, runtime),
                        "inlinePolicies": [],
                    }
                if isinstance(backend, LlmRouter):
                    for model in (*backend.models, *backend.internal_models):
                        models[f"{listener.key}/{model.key}"] = _model(listener.key, backend, model, runtime)
                        common = {"name": model.key, "namespace": ""}
                        backends[f"/{model.key}"] = {
                            "backend": _providers(common, ((model,),), runtime),
                            "inlinePolicies": [],
                        }
    targeted = [target_policy(policy) for policy in gateway.policies]
    return {
        "workloads": [discovery.workload(one) for one in gateway.workloads],
        "services": [discovery.service(one, gateway.workloads, runtime.endpoint) for one in gateway.services],
        "binds": [_bind(bind) for bind in sorted(gateway.binds, key=lambda one: one.key)],
        "routes": {"httpMesh": {}, "tcpMesh": {}, "routeGroups": dump_routes.groups(gateway)},
        "policies": sorted((*_frontend(gateway), *targeted), key=lambda one: str(one["key"])),
        "backends": [backends[key] for key in sorted(backends)],
        "models": [models[key] for key in sorted(models)],
        "version": dict(runtime.build),
        **_virtual_keys(gateway),
        "config": process.settings(gateway, runtime.generation, runtime.workers),
    }
