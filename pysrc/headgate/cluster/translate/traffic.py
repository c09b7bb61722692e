"""`traffic` of a GatewayPolicy as policies of the file.

Words of enums stay as they are: the file reads them in PascalCase as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.called_services import ServiceReader
from headgate.cluster.translate.checked import faults_of_policy
from headgate.cluster.translate.edits import header_edits, pairs, rules, transformation
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.identities import api_keys, passwords, tokens

# Of what protects something and cannot be translated: nobody passes.
CLOSED: Final[Json] = {"deny": "true"}
PROTECTS: Final = frozenset((
    "jwtAuthentication", "apiKeyAuthentication", "basicAuthentication", "authorization", "extAuth", "extProc", "csrf",
))  # fmt: skip
_INTERVALS: Final = {"Seconds": "1s", "Minutes": "1m", "Hours": "1h"}


class Policies(NamedTuple):
    """`found`: policies of the file by kind. `faults`: what could not be translated, as messages. `used` and
    `backends`: Services and GatewayBackends that they call."""

    found: dict[str, Any]
    faults: list[str]
    used: frozenset[ObjectKey] = frozenset()
    backends: frozenset[ObjectKey] = frozenset()


def traffic(snapshot: Snapshot, namespace: str, section: Json) -> Policies:
    """Translate the parts of a section. A part that fails does not affect the others; if it protects something,
    nothing passes instead. `namespace`: of the policy, where its Secrets and ConfigMaps are."""
    found: dict[str, Any] = {}
    faults: list[str] = []
    services = ServiceReader(snapshot, namespace)
    readers = _READERS | _readers(snapshot, namespace, services, faults)
    closed: list[Json] = []
    for name, value in section.items():
        if name == "phase":
            continue
        reader = readers.get(name)
        try:
            if reader is None:
                raise ValueError("is not supported yet")
            made = reader(value)
            if "mcpAuthentication" in made and section.get("phase") == "PreRouting":
                raise ValueError("with mcp is for phase PostRouting: its metadata is that of a route")
            for kind, policy in made.items():
                if wrong := faults_of_policy(kind, policy):
                    raise ValueError(f"cannot be in force: {'; '.join(wrong)}")
            found.update(made)
        except ValueError as error:
            faults.append(f"traffic.{name} {error}")
            if name in PROTECTS:
                closed = [CLOSED]
    if closed:
        # A rule that denies wins over all that allow.
        found["authorization"] = {"rules": [*found.get("authorization", {}).get("rules", ()), *closed]}
    return Policies(found, faults, frozenset(services.used), frozenset(services.backends))


def _headers(value: Json) -> Json:
    return {f"{side}HeaderModifier": header_edits(value[side]) for side in ("request", "response") if side in value}


def _direct(value: Json) -> Json:
    return value | ({"headers": pairs(value["headers"])} if value.get("headers") else {})


def _conditional(value: Json, plain: Callable[[Json], Json]) -> Json:
    """Return a policy whose entries may have conditions: the file has an entry's fields beside its condition."""
    if "conditional" not in value:
        return plain(value)
    entries = [
        plain(one["policy"]) | ({"condition": one["condition"]} if "condition" in one else {})
        for one in value["conditional"]
    ]
    return {"conditional": entries}


def _bucket(value: Json) -> Json:
    """Return the bucket of the one local limit of a conditional entry."""
    if len(value["local"]) != 1:
        raise ValueError("with conditions has exactly one local limit in each entry")
    (limit,) = value["local"]
    kind = "requests" if "requests" in limit else "tokens"
    return {
        "type": kind,
        "tokensPerFill": limit[kind],
        "maxTokens": limit[kind] + limit.get("burst", 0),
        "fillInterval": _INTERVALS[limit["unit"]],
    }


def _rate_limit(value: Json, services: ServiceReader) -> Json:
    if "conditional" not in value:
        found: Json = {"localRateLimit": list(value["local"])} if "local" in value else {}
        return found | ({"remoteRateLimit": services.limit(value["global"])} if "global" in value else {})
    kinds = {kind for one in value["conditional"] for kind in one["policy"]}
    if kinds == {"global"}:
        return {"remoteRateLimit": _conditional(value, lambda one: services.limit(one["global"]))}
    if kinds != {"local"}:
        # The first entry that matches holds alone, and the file has a list for each kind.
        raise ValueError("with conditions is either local in all entries or global in all")
    return {"localRateLimit": _conditional(value, _bucket)}


def _readers(
    snapshot: Snapshot, namespace: str, services: ServiceReader, notes: list[str]
) -> dict[str, Callable[[Json], Json]]:
    """Return the readers of parts that refer to other objects."""

    def keys(value: Json) -> Json:
        told: list[str] = []
        found = api_keys(snapshot, namespace, value, told)
        notes.extend(f"traffic.apiKeyAuthentication: {one}" for one in told)
        return {"apiKey": found}

    return {
        "apiKeyAuthentication": keys,
        "basicAuthentication": lambda value: {"basicAuth": passwords(snapshot, namespace, value)},
        "extAuth": lambda value: {"extAuthz": _conditional(value, services.authorization)},
        "extProc": lambda value: {"extProc": _conditional(value, services.processing)},
        "rateLimit": lambda value: _rate_limit(value, services),
        "jwtAuthentication": lambda value: tokens(value, services),
    }


_READERS: Final[dict[str, Callable[[Json], Json]]] = {
    "authorization": lambda value: {"authorization": {"rules": rules(value)}},
    "buffer": lambda value: {"buffer": value},
    "cors": lambda value: {"cors": value | {"maxAge": f"{value.get('maxAge', 5)}s"}},
    "csrf": lambda value: {"csrf": value},
    "delay": lambda value: {"delay": value},
    "directResponse": lambda value: {"directResponse": _conditional(value, _direct)},
    "headerModifiers": _headers,
    "hostRewrite": lambda value: {"urlRewrite": {"authority": value["mode"]}},
    "retry": lambda value: {"retry": {"codes": [], **value}},
    "timeouts": lambda value: {"timeout": {"requestTimeout": value["request"]}},
    "transformation": lambda value: {"transformations": _conditional(value, transformation)},
}
