"""What the loader of the file says of a part by itself.

A part that it refuses would take the whole file of a gateway away. So each is shown to it before, and what it says
becomes a condition of the object that the part came from. That is a pure function: no environment and no file of the
part are read.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Final

from headgate.cluster.translate.fragments import Json, assembled_value
from headgate.config.load import TextSource, load
from headgate.errors import ConfigErrors, Problem

# Where processes of a Gateway have the SPIFFE Workload API is said by its GatewayParameters, which are not here.
_ENVIRONMENT: Final = {"SPIFFE_ENDPOINT_SOCKET": "unix:///spiffe"}
# Most parts are the same in the next snapshot.
_KEPT: Final = 4_096
_NOWHERE: Final[Json] = {"host": "127.0.0.1:1"}
_SERVER: Final[Json] = {"mcp": {"targets": [{"name": "x", "mcp": _NOWHERE}]}}
_SUITED: Final[dict[str, Json]] = {
    "ai": {"ai": {"name": "x", "provider": {"openAI": {}}}}, "mcpAuthorization": _SERVER, "mcpGuardrails": _SERVER,
}  # fmt: skip
_PLACE: Final = re.compile(
    r"^(policies\[0\]|binds\[0\]\.listeners\[0\]\.(routes|tcpRoutes)\[0\](\.policies)?|backends\[0\](\.llm\.models\[0\])?)\.?"
)


def faults_of_policy(kind: str, value: object) -> tuple[str, ...]:
    """Return what is wrong with a policy of a route, in words for people."""
    return _faults(json.dumps(_file({"policies": {kind: value}, "backends": [_NOWHERE]})))


def faults_of_call(kind: str, value: object) -> tuple[str, ...]:
    """Return what is wrong with a policy of calls to backends."""
    backend = _SUITED.get(kind, _NOWHERE) | {"policies": {kind: value}}
    return _faults(json.dumps(_file({"backends": [backend]})))


def faults_of_frontend(kind: str, value: object) -> tuple[str, ...]:
    """Return what is wrong with a part of `frontendPolicies`."""
    return _faults(json.dumps({"frontendPolicies": {kind: value}}))


def faults_of_port(kind: str, value: object) -> tuple[str, ...]:
    """Return what is wrong with a part of `frontend` for one port."""
    name = {"name": "x", "namespace": "x"}
    target = {"gateway": {"gatewayName": "default", "gatewayNamespace": "default", "port": 8080}}
    return _faults(json.dumps(_file({}) | {"policies": [{"name": name, "target": target, "frontend": {kind: value}}]}))


def faults_of_backend(form: Json) -> tuple[str, ...]:
    """Return what is wrong with a backend as it stands in a route or, without a name there, among the named ones."""
    if "name" in form:
        return _faults(json.dumps(_file({"backends": [{"backend": form["name"]}]}) | {"backends": [form]}))
    return _faults(json.dumps(_file({"backends": [form]})))


def faults_of_models(section: Json) -> tuple[str, ...]:
    """Return what is wrong with the models of a backend."""
    return _faults(json.dumps(_file({"backends": [{"backend": "x"}]}) | {"backends": [{"name": "x", "llm": section}]}))


def faults_of_route(route: Json, backends: list[Json]) -> tuple[str, ...]:
    """Return what is wrong with a route with the named backends that it leads to."""
    return _faults(json.dumps(_file(route) | {"backends": backends}))


def faults_of_tcp_route(route: Json, backends: list[Json]) -> tuple[str, ...]:
    """Return what is wrong with a route of connections with the named backends that it leads to."""
    listener = {"protocol": "TCP", "tcpRoutes": [route]}
    return _faults(json.dumps({"binds": [{"port": 8080, "listeners": [listener]}], "backends": backends}))


def _file(route: Json) -> Json:
    return {"binds": [{"port": 8080, "listeners": [{"routes": [route]}]}]}


@lru_cache(_KEPT)
def _faults(text: str) -> tuple[str, ...]:
    try:
        load(TextSource(json.dumps(assembled_value(json.loads(text)))), environ=_ENVIRONMENT)
    except ConfigErrors as errors:
        # What else is in the file of a gateway is not here.
        told = [one for one in errors.errors if one.problem is not Problem.REFERENCE]
        return tuple(f"{_PLACE.sub('', one.path)}: {one.message}".removeprefix(": ") for one in told)
    return ()
