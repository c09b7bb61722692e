"""GatewayBackends as backends of the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from headgate.cluster.snapshot import GATEWAY_BACKEND, SERVICE, GroupKind, ObjectKey, Snapshot, generation, key_of
from headgate.cluster.translate.backend_policies import BackendPolicyReader
from headgate.cluster.translate.calls import OF_ROUTES
from headgate.cluster.translate.checked import faults_of_backend, faults_of_policy
from headgate.cluster.translate.conditions import Condition, ObjectStatus, Unmet, fails, holds
from headgate.cluster.translate.fragments import Fragment, Json
from headgate.cluster.translate.providers import named_provider
from headgate.cluster.translate.selectors import selects
from headgate.cluster.translate.services import address, cluster_host, host

_FAILED: Final = "failed to translate backend: "
_PATHS: Final = {"StreamableHTTP": "/mcp", "SSE": "/sse"}
_FORMS: Final = {"StreamableHTTP": "mcp", "SSE": "sse"}
# What a Service says of a port behind which there is an MCP server, and where.
_PROTOCOLS: Final = {"headgate.dev/mcp": "StreamableHTTP", "headgate.dev/mcp-sse": "SSE"}
_PATH: Final = "headgate.dev/mcp-path"
_NAME: Final = "headgate.dev/mcp-target-name"
_MOST_TARGETS: Final = 128


class TranslatedBackend(NamedTuple):
    """`form`: the backend without a name. `used` and `backends`: Services and GatewayBackends that its policies call,
    and Services that it is. `of_routes`: policies that the file has at the routes to it."""

    form: dict[str, Any]
    used: frozenset[ObjectKey] = frozenset()
    backends: frozenset[ObjectKey] = frozenset()
    of_routes: Json = {}


def file_name(key: ObjectKey) -> str:
    """Return the name of a GatewayBackend among the backends of the file's model."""
    return f"{key.namespace}/{key.name}"


def translate_backend(
    snapshot: Snapshot, found: Json, callers: frozenset[ObjectKey] = frozenset()
) -> TranslatedBackend | Unmet:
    """Return what a GatewayBackend is, or why it is not accepted. `callers`: those whose policies call it."""
    key, spec = key_of(found), found["spec"]
    reader = BackendPolicyReader(snapshot, key.namespace, callers | {key})
    try:
        form = _form(snapshot, key, spec, reader)
        policies: Json = {"a2a": {}} if "a2a" in spec else {}
        if "policies" in spec:
            policies |= _read(reader, spec["policies"], "policies.")
    except ValueError as error:
        return Unmet("TranslationError", f"{_FAILED}{error}")
    of_routes = {name: policies.pop(name) for name in OF_ROUTES & policies.keys()}
    if policies:
        form["policies"] = policies
    for name, value in of_routes.items():
        if wrong := faults_of_policy(name, value):
            return Unmet("TranslationError", f"{_FAILED}policies.{name}: {'; '.join(wrong)}")
    if wrong := faults_of_backend({"name": file_name(key), **form}):
        return Unmet("TranslationError", f"{_FAILED}{'; '.join(wrong)}")
    used, backends = frozenset(reader.services.used), frozenset(reader.services.backends)
    return TranslatedBackend(form, used, backends, of_routes)


def status(snapshot: Snapshot, found: Json) -> ObjectStatus:
    """Return the status of a GatewayBackend: whether it is accepted, and why not."""
    made = translate_backend(snapshot, found)
    condition: Condition = holds("Accepted", "Accepted", "Backend successfully accepted")
    if isinstance(made, Unmet):
        condition = fails("Accepted", made)
    content = {"conditions": [condition.printed(generation(found))]}
    return ObjectStatus(GATEWAY_BACKEND, key_of(found), content)


def sections(form: Json) -> Iterator[str]:
    """Yield the names of the providers or MCP targets of a backend."""
    for group in form.get("ai", {}).get("groups", ()):
        for one in group["providers"]:
            yield one["name"]
    for one in form.get("mcp", {}).get("targets", ()):
        yield one["name"]


def called_by(snapshot: Snapshot, used: Iterable[ObjectKey]) -> tuple[set[ObjectKey], set[ObjectKey]]:
    """Return the Services and GatewayBackends that policies of GatewayBackends call, and those of these in turn."""
    services: set[ObjectKey] = set()
    known: set[ObjectKey] = set()
    waiting = set(used)
    while waiting:
        key = waiting.pop()
        known.add(key)
        found = snapshot.find(GATEWAY_BACKEND, *key)
        made = None if found is None else translate_backend(snapshot, found)
        if isinstance(made, TranslatedBackend):
            services |= made.used
            waiting |= made.backends - known
    return services, known


def named(snapshot: Snapshot, used: Iterable[ObjectKey]) -> Iterator[Fragment]:
    """Return the backends of the file that routes use."""
    for key in sorted(set(used)):
        found = snapshot.find(GATEWAY_BACKEND, *key)
        made = None if found is None else translate_backend(snapshot, found)
        if isinstance(made, TranslatedBackend):
            yield Fragment(key=f"backend/{key}", place="backends", value={"name": file_name(key), **made.form})


def _read(reader: BackendPolicyReader, section: Json, about: str) -> Json:
    try:
        return reader.read(section)
    except ValueError as error:
        raise ValueError(f"{about}{error}") from None


def _form(snapshot: Snapshot, key: ObjectKey, spec: Json, reader: BackendPolicyReader) -> Json:
    if "static" in spec:
        static = spec["static"]
        if "unixPath" in static:
            return {"host": f"unix:{static['unixPath']}"}
        return {"host": address(static["host"], static["port"])}
    if "a2a" in spec:
        return {"host": address(spec["a2a"]["host"], spec["a2a"]["port"])}
    if "aws" in spec:
        return {"aws": dict(spec["aws"])}
    if "dynamicForwardProxy" in spec:
        return {"dynamic": dict(spec["dynamicForwardProxy"])}
    if "mcp" in spec:
        return {"mcp": _mcp(snapshot, key.namespace, spec["mcp"], reader)}
    if "provider" in spec["ai"]:
        return {"ai": _provider(snapshot, key.namespace, {"name": key.name, **spec["ai"]["provider"]}, reader)}
    groups = [
        {"providers": [_provider(snapshot, key.namespace, one, reader) for one in group["providers"]]}
        for group in spec["ai"]["groups"]
    ]
    return {"ai": {"groups": groups}}


def _provider(snapshot: Snapshot, namespace: str, value: Json, reader: BackendPolicyReader) -> Json:
    found = named_provider(snapshot, namespace, value, reader.services.used)
    if "policies" in value:
        found["policies"] = _read(reader, value["policies"], f"provider {value['name']}: policies.")
    return found


def _mcp(snapshot: Snapshot, namespace: str, value: Json, reader: BackendPolicyReader) -> Json:
    targets = [one for target in value["targets"] for one in _targets(snapshot, namespace, target, reader)]
    if not targets:
        raise ValueError("the selectors of its targets match no port of a Service that says it is MCP")
    if len(targets) > _MOST_TARGETS:
        raise ValueError(f"{len(targets)} targets, where {_MOST_TARGETS} is the most")
    names = [one["name"] for one in targets]
    if twice := sorted({one for one in names if names.count(one) > 1}):
        raise ValueError(f"several targets are named {', '.join(twice)}")
    found: Json = {"targets": targets}
    settings = {"sessionRouting": "statefulMode", "failureMode": "failureMode", "prefixMode": "prefixMode"}
    return found | {ours: value[name] for name, ours in settings.items() if name in value}


def _targets(snapshot: Snapshot, namespace: str, target: Json, reader: BackendPolicyReader) -> Iterator[Json]:
    name = target["name"]
    if "selector" in target:
        yield from _selected(snapshot, namespace, target["selector"], reader.services.used)
        return
    static = target["static"]
    protocol = static.get("protocol", "StreamableHTTP")
    if "backendRef" in static:
        reference = static["backendRef"]
        if GroupKind(reference.get("group", ""), reference.get("kind", "Service")) != SERVICE:
            raise ValueError(f"target {name}: a backendRef of kind {reference['kind']} is not supported")
        key = ObjectKey(namespace, reference["name"])
        name_of_host = cluster_host(snapshot, key, static["port"])
        # The loader takes the name of a Service that it knows for its endpoints.
        reader.services.used.add(key)
    else:
        name_of_host = static["host"]
    place = {"host": name_of_host, "port": static["port"], "path": static.get("path", _PATHS[protocol])}
    found: Json = {"name": name, _FORMS[protocol]: place}
    if "policies" in static:
        found["policies"] = _read(reader, static["policies"], f"target {name}: policies.")
    yield found


def _selected(snapshot: Snapshot, namespace: str, selector: Json, used: set[ObjectKey]) -> Iterator[Json]:
    """Return a target for each port of the Services that are selected and say that it is MCP. `used`: takes these."""
    spaces = selector.get("namespaces")

    def inside(space: str) -> bool:
        return space == namespace if spaces is None else selects(spaces, snapshot.labels_of_namespace(space))

    for key, service in sorted(snapshot.kinds.get(SERVICE, {}).items()):
        labels = service["metadata"].get("labels") or {}
        if not inside(key.namespace) or not selects(selector.get("services") or {}, labels):
            continue
        told = service["metadata"].get("annotations") or {}
        ports = [one for one in service["spec"].get("ports") or () if one.get("appProtocol") in _PROTOCOLS]
        if ports:
            used.add(key)
        for port in ports:
            protocol = _PROTOCOLS[port["appProtocol"]]
            name = told.get(_NAME, key.name) if len(ports) == 1 else f"{told.get(_NAME, key.name)}-{port['port']}"
            place = {"host": host(key), "port": port["port"], "path": told.get(_PATH, _PATHS[protocol])}
            yield {"name": name, _FORMS[protocol]: place}
