"""The targets for requests of the page: ports, model endpoints and MCP endpoints of the running configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headgate.ir.backend import HostBackend
from headgate.ir.bind import Bind
from headgate.ir.gateway import Gateway
from headgate.ir.listener import Listener
from headgate.ir.mcp import McpBackend, McpTarget, OpenApiTarget, SseTarget, StdioTarget
from headgate.ir.model import AiBackend, LlmModel, LlmRouter
from headgate.ir.route import Route

Json = dict[str, Any]
CHAT_PATH = "/v1/chat/completions"
MAX_TARGETS = 200


def targets(gateway: Gateway) -> Json:
    """Return `ports`, `models` and `mcp`, each entry with its port, host name and path, and `served`: the models."""
    found: Json = {"ports": [], "models": [], "mcp": [], "served": []}
    for bind in gateway.binds:
        for listener in bind.listeners:
            found["ports"].append({"listener": listener.key, **_place(bind, listener, None), "path": "/"})
            for route in listener.routes:
                for choice in route.backends:
                    place = {"route": route.key, **_place(bind, listener, route)}
                    match choice.backend:
                        case LlmRouter() as router:
                            models = _models(router)
                            found["models"].append({**place, "path": _below(route, CHAT_PATH), "models": models})
                            found["served"] += [_served(one, one.pattern) for one in router.models]
                        case AiBackend() as ai:
                            models = [one.pinned_model for one in ai.members if one.pinned_model]
                            found["models"].append({**place, "path": _below(route, CHAT_PATH), "models": models})
                            found["served"] += [_served(one, one.pinned_model or "*") for one in ai.members]
                        case McpBackend() as mcp:
                            servers = [server_view(target) for target in mcp.targets]
                            names = [one["name"] for one in servers]
                            one_mcp = {"backend": mcp.name, "targets": names, "servers": servers}
                            found["mcp"].append({**place, "path": _first(route), **one_mcp})
                        case _:
                            pass
    # A router stands behind several ports.
    found["served"] = list({(one["provider"], one["name"], one["address"]): one for one in found["served"]}.values())
    return {kind: rows[:MAX_TARGETS] for kind, rows in found.items()}


def _served(model: LlmModel, name: str) -> Json:
    provider = model.provider
    address = provider.endpoint.address
    return {"name": name, "provider": provider.kind, "address": address, "upstream": model.pinned_model}


def server_view(target: McpTarget) -> Json:
    """Return name, kind and address of an MCP target, without what may be a credential."""
    match target:
        case StdioTarget():
            # Arguments may hold credentials.
            kind, address = "process", target.cmd
        case OpenApiTarget():
            kind, address = "OpenAPI", target.endpoint.address
        case SseTarget():
            kind, address = "SSE", f"{target.endpoint.address}{_shown_path(target.path)}"
        case _:
            kind, address = "HTTP", f"{target.endpoint.address}{_shown_path(target.path)}"
    return {"name": target.name, "kind": kind, "address": address}


def _shown_path(path: str) -> str:
    # A query may hold a credential.
    return path.partition("?")[0]


def watched(gateway: Gateway) -> Iterator[tuple[str, str, str]]:
    """Yield backend, owner and key of every endpoint whose health the workers share (`/config_dump` shows the same
    endpoints).
    """
    for service in gateway.services:
        for workload in gateway.workloads:
            if dict(workload.services).get(service.key) is not None:
                yield f"{service.namespace}/{service.name}", f"service/{service.key}", workload.uid
    for named in gateway.backends:
        backend = named.backend
        if isinstance(backend, HostBackend) and (
            named.policies.health is not None or named.policies.affinity is not None
        ):
            yield f"{named.namespace}/{named.name}", f"host/{backend.name}", backend.endpoint.address


def addresses(gateway: Gateway) -> dict[tuple[str, str], str]:
    """Return the address of each watched endpoint whose key is none, by owner and key."""
    found = {}
    for service in gateway.services:
        for workload in gateway.workloads:
            ports = dict(workload.services).get(service.key)
            if ports is not None and workload.addresses:
                host = workload.addresses[0]
                shown = f"[{host}]" if ":" in host else host
                numbers = dict.fromkeys(port for _, port in ports)
                found[f"service/{service.key}", workload.uid] = ", ".join(f"{shown}:{port}" for port in numbers) or host
    return found


def _place(bind: Bind, listener: Listener, route: Route | None) -> Json:
    names = (listener.hostname or "", *(route.hostnames if route is not None else ()))
    # The route's host name is the most specific one; a wildcard `*.a.b` becomes `any.a.b`.
    name = next((one for one in reversed(names) if one and one != "*"), "localhost")
    host = f"any{name[1:]}" if name.startswith("*.") else name
    return {"bind": bind.key, "port": bind.port, "tls": bind.tls, "host": host}


def _first(route: Route) -> str:
    return next((one.path.value for one in route.matches if one.path.kind != "regex"), "/")


def _below(route: Route, path: str) -> str:
    exact = next((one.path.value for one in route.matches if one.path.kind == "exact"), None)
    if exact is not None:
        return exact
    first = _first(route).rstrip("/")
    return first if first.endswith(path) else first + (path.removeprefix("/v1") if first.endswith("/v1") else path)


def _models(router: LlmRouter) -> list[str]:
    names = [one.name for one in router.virtual_models] + [one.pattern for one in router.models]
    return list(dict.fromkeys(names))
