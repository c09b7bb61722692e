"""`frontend` of a GatewayPolicy as `frontend` of a policy of the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.called_services import ServiceReader
from headgate.cluster.translate.checked import faults_of_frontend
from headgate.cluster.translate.edits import rules
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.traffic import CLOSED, Policies

_TLS: Final = {"minProtocolVersion": "minVersion", "maxProtocolVersion": "maxVersion"}
_VERSIONS: Final = {"1.2": "TLS_V1_2", "1.3": "TLS_V1_3"}
_ENDPOINT: Final = ("backendRef", "url")
# What one listener may have, where it has its port for itself.
OF_LISTENERS: Final = frozenset(("accessLog", "tracing"))
SHARED: Final = "listener that shares its port"
# What the CRD takes, and the status of a policy refuses, with the reason: by part and what it is said of.
REFUSED: Final = {
    ("metrics", ""): "labels of metrics are set for the process: use config.metrics in rawConfig of GatewayParameters",
    **{(name, SHARED): "listeners of a port share one access log and trace exporter" for name in sorted(OF_LISTENERS)},
}


def client_side(snapshot: Snapshot, namespace: str, section: Json) -> Policies:
    """Return what the parts of a section are. One that cannot be said leaves the others; without the rules about
    connections none is let in. `namespace`: of the policy."""
    found: dict[str, Any] = {}
    faults: list[str] = []
    services = ServiceReader(snapshot, namespace)
    readers = _READERS | {
        "accessLog": lambda value: _log(value, services),
        "tracing": lambda value: _tracing(value, services),
    }
    for name, value in section.items():
        try:
            if name not in readers:
                raise ValueError(f"is refused: {REFUSED[name, '']}")
            made = readers[name](value)
            if wrong := faults_of_frontend(name, made):
                raise ValueError(f"cannot be in force: {'; '.join(wrong)}")
            found[name] = made
        except ValueError as error:
            faults.append(f"frontend.{name} {error}")
            if name == "networkAuthorization":
                found[name] = {"rules": [CLOSED]}
    return Policies(found, faults, frozenset(services.used), frozenset(services.backends))


def _tls(value: Json) -> Json:
    found = {name: one for name, one in value.items() if name not in (*_TLS, "alpnProtocols")}
    found |= {ours: _VERSIONS[value[name]] for name, ours in _TLS.items() if name in value}
    # The file has names of protocols as lists of octets.
    names = value.get("alpnProtocols")
    return found if names is None else found | {"alpn": [list(one.encode()) for one in names]}


def _named(entries: list[Json]) -> Json:
    return {one["name"]: one["expression"] for one in entries}


def _attributes(value: Json) -> Json:
    """Return what is added to and left out of an entry of a log."""
    said = value.get("attributes") or {}
    found: Json = {"add": _named(said["add"])} if "add" in said else {}
    return found | ({"remove": list(said["remove"])} if "remove" in said else {})


def _collector(value: Json, services: ServiceReader) -> Json:
    """Return where and how something is sent by OTLP."""
    kept: Json = {name: value[name] for name in ("path", "filter") if name in value}
    kept |= {"protocol": value["protocol"].lower()} if "protocol" in value else {}
    if "url" in value and value.get("protocol") == "HTTP" and "path" not in value:
        scheme, slashes, rest = value["url"].partition("://")
        name, _, path = rest.partition("/")
        if path:
            return services.place({"url": f"{scheme}{slashes}{name}"}) | kept | {"path": f"/{path}"}
    return services.place({name: value[name] for name in _ENDPOINT if name in value}) | kept


def _log(value: Json, services: ServiceReader) -> Json:
    found = _attributes(value) | ({"filter": value["filter"]} if "filter" in value else {})
    if "otlp" in value:
        fields = _attributes(value["otlp"])
        found["otlp"] = _collector(value["otlp"], services) | ({"fields": fields} if fields else {})
    return found


def _tracing(value: Json, services: ServiceReader) -> Json:
    said = _attributes(value)
    found = _collector(value, services) | ({"attributes": said["add"]} if "add" in said else {})
    found |= {"remove": said["remove"]} if "remove" in said else {}
    found |= {"resources": _named(value["resources"])} if "resources" in value else {}
    return found | {name: value[name] for name in ("randomSampling", "clientSampling") if name in value}


_READERS: Final[dict[str, Callable[[Json], Json]]] = {
    "tcp": lambda value: {"keepalives": {"enabled": True, **value["keepalive"]}},
    "tls": _tls,
    "http": dict,
    "networkAuthorization": lambda value: {"rules": rules(value)},
    "proxyProtocol": dict,
    "connect": dict,
}
