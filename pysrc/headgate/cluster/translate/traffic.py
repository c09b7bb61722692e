"""`traffic` of a GatewayPolicy as policies of the file.

Words of enums stay as they are: the file reads them in PascalCase as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.checked import faults_of_policy
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.identities import api_keys, passwords, tokens

# Of what protects something and cannot be translated: nobody passes.
CLOSED: Final[Json] = {"deny": "true"}
PROTECTS: Final = frozenset((
    "jwtAuthentication", "apiKeyAuthentication", "basicAuthentication", "authorization", "extAuth", "extProc", "csrf",
))  # fmt: skip
_INTERVALS: Final = {"Seconds": "1s", "Minutes": "1m", "Hours": "1h"}


class Policies(NamedTuple):
    """`found`: policies of the file by kind. `faults`: what could not be said, in words for people."""

    found: dict[str, Any]
    faults: list[str]


def traffic(snapshot: Snapshot, namespace: str, section: Json) -> Policies:
    """Return what the parts of a section are. One that cannot be said leaves the others; if it protects something,
    nothing passes instead. `namespace`: of the policy, where its Secrets and ConfigMaps are."""
    found: dict[str, Any] = {}
    faults: list[str] = []
    readers = _READERS | _readers(snapshot, namespace, faults)
    closed: list[Json] = []
    for name, value in section.items():
        if name == "phase":
            continue
        reader = readers.get(name)
        try:
            if reader is None:
                raise ValueError("is not supported yet")
            made = reader(value)
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
    return Policies(found, faults)


def _pairs(entries: list[Json]) -> Json:
    return {one["name"]: one["value"] for one in entries}


def header_edits(value: Json) -> Json:
    """Return a header modifier of the file for `set`, `add` and `remove`."""
    found: Json = {action: _pairs(value[action]) for action in ("set", "add") if value.get(action)}
    return found | ({"remove": list(value["remove"])} if value.get("remove") else {})


def _headers(value: Json) -> Json:
    return {f"{side}HeaderModifier": header_edits(value[side]) for side in ("request", "response") if side in value}


def transformation(value: Json) -> Json:
    """Return a transformation of the file for one without conditions."""
    found: Json = {}
    for side in ("request", "response"):
        if side in value:
            edits = {name: value[side][name] for name in ("body", "metadata") if name in value[side]}
            found[side] = header_edits(value[side]) | edits
    return found


def _direct(value: Json) -> Json:
    return value | ({"headers": _pairs(value["headers"])} if value.get("headers") else {})


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
    if "global" in value or len(value["local"]) != 1:
        raise ValueError("with conditions has exactly one local limit in each entry")
    (limit,) = value["local"]
    kind = "requests" if "requests" in limit else "tokens"
    return {
        "type": kind,
        "tokensPerFill": limit[kind],
        "maxTokens": limit[kind] + limit.get("burst", 0),
        "fillInterval": _INTERVALS[limit["unit"]],
    }


def _rate_limit(value: Json) -> Json:
    if "conditional" in value:
        return {"localRateLimit": _conditional(value, _bucket)}
    if "global" in value:
        raise ValueError("global is not supported yet")
    return {"localRateLimit": list(value["local"])}


def rules(value: Json) -> list[Json]:
    """Return the rules of an authorization."""
    kind = value.get("action", "Allow").lower()
    return [{kind: one} for one in value["policy"]["matchExpressions"]]


def _readers(snapshot: Snapshot, namespace: str, notes: list[str]) -> dict[str, Callable[[Json], Json]]:
    """Return the readers of parts that refer to other objects."""

    def keys(value: Json) -> Json:
        told: list[str] = []
        found = api_keys(snapshot, namespace, value, told)
        notes.extend(f"traffic.apiKeyAuthentication: {one}" for one in told)
        return {"apiKey": found}

    return {
        "apiKeyAuthentication": keys,
        "basicAuthentication": lambda value: {"basicAuth": passwords(snapshot, namespace, value)},
        "jwtAuthentication": lambda value: {"jwtAuth": tokens(value)},
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
    "rateLimit": _rate_limit,
    "retry": lambda value: {"retry": {"codes": [], **value}},
    "timeouts": lambda value: {"timeout": {"requestTimeout": value["request"]}},
    "transformation": lambda value: {"transformations": _conditional(value, transformation)},
}
