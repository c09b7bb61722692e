"""Strategic merge patches of the kinds that overlays are for.

https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.cluster.deploy.outcome import DeployRefused

Json = dict[str, Any]
DIRECTIVE: Final = "$patch"
_FROM_LIST: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"
_RETAINED: Final = "$retainKeys"


@dataclass(frozen=True, slots=True)
class PatchSchema:
    """How the fields of an object are patched. `keys`: of lists whose items are merged, the field that names an item.
    `under`: of fields that are objects or lists of objects, what is in them. `any_key`: of every other field."""

    keys: Mapping[str, str] = field(default_factory=dict)
    under: Mapping[str, PatchSchema] = field(default_factory=dict)


PLAIN: Final = PatchSchema()
_CONTAINER: Final = PatchSchema(
    keys={"env": "name", "ports": "containerPort", "volumeMounts": "mountPath", "volumeDevices": "devicePath"}
)
_POD: Final = PatchSchema(
    keys={
        "containers": "name", "initContainers": "name", "ephemeralContainers": "name", "volumes": "name",
        "imagePullSecrets": "name", "topologySpreadConstraints": "topologyKey", "hostAliases": "ip",
        "resourceClaims": "name", "schedulingGates": "name",
    },
    under={"containers": _CONTAINER, "initContainers": _CONTAINER, "ephemeralContainers": _CONTAINER},
)  # fmt: skip
_WORKLOAD: Final = PatchSchema(under={"template": PatchSchema(under={"spec": _POD})})
SCHEMAS: Final[Mapping[str, PatchSchema]] = {
    "Deployment": PatchSchema(under={"spec": _WORKLOAD}),
    "DaemonSet": PatchSchema(under={"spec": _WORKLOAD}),
    "Service": PatchSchema(under={"spec": PatchSchema(keys={"ports": "port"})}),
    "ServiceAccount": PatchSchema(keys={"secrets": "name", "imagePullSecrets": "name"}),
    "PodDisruptionBudget": PLAIN,
    "HorizontalPodAutoscaler": PLAIN,
}


def patched(document: Json, patch: Json) -> Json:
    """Return an object with a patch applied. Raises DeployRefused if the patch cannot be understood."""
    return _merged(document, patch, SCHEMAS[document["kind"]], document["kind"])


def _merged(original: Json, patch: Json, schema: PatchSchema, where: str) -> Json:
    directive = patch.get(DIRECTIVE, "merge")
    if directive == "replace":
        found: Json = _clean({key: one for key, one in patch.items() if key != DIRECTIVE})
        return found
    if directive == "delete":
        return {}
    if directive != "merge":
        raise DeployRefused(f"{where}: {DIRECTIVE}: {directive!r} is none of delete, replace and merge")
    found = _retained(original, patch.get(_RETAINED), where)
    for name, value in patch.items():
        if name.startswith(_FROM_LIST):
            _remove_words(found, name.removeprefix(_FROM_LIST), value)
    for name, value in patch.items():
        if name.startswith("$"):
            if not (name in (DIRECTIVE, _RETAINED) or name.startswith((_FROM_LIST, _ORDER))):
                raise DeployRefused(f"{where}: {name} is no directive of a strategic merge patch")
            continue
        at = f"{where}.{name}"
        if value is None or (isinstance(value, dict) and value.get(DIRECTIVE) == "delete"):
            found.pop(name, None)
        elif isinstance(value, dict):
            known = found.get(name)
            found[name] = _merged(known if isinstance(known, dict) else {}, value, schema.under.get(name, PLAIN), at)
        elif isinstance(value, list):
            found[name] = _list(found.get(name), value, schema, name, at)
        else:
            found[name] = value
    return found


def _list(known: Any, patch: list[Any], schema: PatchSchema, name: str, where: str) -> list[Any]:
    key = schema.keys.get(name)
    if key is None:
        return [_clean(one) for one in patch]
    return _merged_list(known if isinstance(known, list) else [], patch, key, schema.under.get(name, PLAIN), where)


def _merged_list(original: list[Any], patch: list[Any], key: str, schema: PatchSchema, where: str) -> list[Any]:
    """Merge lists of objects that `key` names."""
    changes, replaces = [], False
    for one in patch:
        if not isinstance(one, dict):
            raise DeployRefused(f"{where}: expected an object, not {one!r}")
        directive = one.get(DIRECTIVE, "merge")
        if directive == "replace":
            # It stands for the whole list; what else it says is not looked at.
            replaces = True
        elif key not in one:
            raise DeployRefused(f"{where}: an item without {key}")
        elif directive == "delete":
            original = [other for other in original if other.get(key) != one[key]]
        elif directive == "merge":
            changes.append(one)
        else:
            raise DeployRefused(f"{where}: {DIRECTIVE}: {directive!r} is none of delete, replace and merge")
    if replaces:
        return [_clean(one) for one in changes]
    known = {other.get(key): other for other in original}
    done: dict[Any, Json] = {}
    for one in changes:
        before = done.get(one[key], known.get(one[key], {}))
        done[one[key]] = _merged(before, one, schema, f"{where}[{one[key]}]")
    return _ordered(original, done, key)


def _ordered(original: list[Any], done: dict[Any, Json], key: str) -> list[Any]:
    """Return patched items in the patch's order, and the others between them where their old places allow it."""
    place = {one.get(key): index for index, one in enumerate(original)}
    left = [one for one in original if one.get(key) not in done]
    found: list[Any] = []
    for name, item in done.items():
        while left and name in place and place[left[0].get(key)] < place[name]:
            found.append(left.pop(0))
        found.append(item)
    return found + left


def _retained(original: Json, names: Any, where: str) -> Json:
    """Return a copy of an object, with the named fields alone where there are names."""
    if names is None:
        return copy.deepcopy(original)
    if not isinstance(names, list):
        raise DeployRefused(f"{where}: {_RETAINED}: a list is expected")
    return copy.deepcopy({key: one for key, one in original.items() if key in names})


def _remove_words(found: Json, name: str, words: Any) -> None:
    if isinstance(found.get(name), list) and isinstance(words, list):
        found[name] = [one for one in found[name] if one not in words]


def _clean(value: Any) -> Any:
    """Return a value without directives and nulls, as one that takes the place of another is stored."""
    if isinstance(value, dict):
        kept = {key: _clean(one) for key, one in value.items() if not key.startswith("$") and one is not None}
        return {} if value.get(DIRECTIVE) == "delete" else kept
    return [_clean(one) for one in value] if isinstance(value, list) else value
