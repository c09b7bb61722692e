"""What was read of a cluster at one moment: plain objects by kind, namespace and name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, compress, islice
from operator import is_not
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

Json = dict[str, Any]
_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")

CORE: Final = ""
DISCOVERY: Final = "discovery.k8s.io"
GATEWAY_API: Final = "gateway.networking.k8s.io"
INFERENCE: Final = "inference.networking.k8s.io"
OWN: Final = "headgate.dev"


class GroupKind(NamedTuple):
    """A kind without its version: one version of each is read."""

    group: str
    kind: str


class ObjectKey(NamedTuple):
    """An object of a known kind; the namespace of one that has none is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


SERVICE: Final = GroupKind(CORE, "Service")
CONFIG_MAP: Final = GroupKind(CORE, "ConfigMap")
SECRET: Final = GroupKind(CORE, "Secret")
NAMESPACE: Final = GroupKind(CORE, "Namespace")
POD: Final = GroupKind(CORE, "Pod")
ENDPOINT_SLICE: Final = GroupKind(DISCOVERY, "EndpointSlice")
GATEWAY_CLASS: Final = GroupKind(GATEWAY_API, "GatewayClass")
GATEWAY: Final = GroupKind(GATEWAY_API, "Gateway")
GRPC_ROUTE: Final = GroupKind(GATEWAY_API, "GRPCRoute")
HTTP_ROUTE: Final = GroupKind(GATEWAY_API, "HTTPRoute")
LISTENER_SET: Final = GroupKind(GATEWAY_API, "ListenerSet")
TCP_ROUTE: Final = GroupKind(GATEWAY_API, "TCPRoute")
TLS_ROUTE: Final = GroupKind(GATEWAY_API, "TLSRoute")
REFERENCE_GRANT: Final = GroupKind(GATEWAY_API, "ReferenceGrant")
INFERENCE_POOL: Final = GroupKind(INFERENCE, "InferencePool")
GATEWAY_BACKEND: Final = GroupKind(OWN, "GatewayBackend")
GATEWAY_MODEL: Final = GroupKind(OWN, "GatewayModel")


def kind_of(document: Mapping[str, Any]) -> GroupKind:
    """Return group and kind of an object; the group of the core API is ""."""
    group, slash, _ = document["apiVersion"].rpartition("/")
    return GroupKind(group if slash else CORE, document["kind"])


def key_of(document: Mapping[str, Any]) -> ObjectKey:
    """Return namespace and name of an object; "" is the namespace of an object that has none."""
    metadata = document["metadata"]
    return ObjectKey(metadata.get("namespace", ""), metadata["name"])


def seniority(document: Mapping[str, Any]) -> tuple[str, ObjectKey]:
    """Return what objects are sorted by where only one of them can be right: the oldest first, then by name.

    Times of the API are texts of one form (RFC 3339 in UTC, whole seconds), which sort as times do.
    """
    return document["metadata"].get("creationTimestamp") or "", key_of(document)


def generation(document: Mapping[str, Any]) -> int:
    """Return the number of the object's specification, which the API server counts up; 0 without one."""
    return int(document["metadata"].get("generation", 0))


def differing(before: Mapping[ObjectKey, Json], after: Mapping[ObjectKey, Json]) -> list[ObjectKey]:
    """Return the keys of objects that are new, gone or others."""
    # What is in its place has not changed; only the rest is looked up. No Python runs for an object: there are many.
    others = compress(after.items(), map(is_not, after.values(), before.values()))
    moved = chain(others, islice(after.items(), len(before), None))
    changed = [key for key, one in moved if before.get(key) is not one]
    if len(after) - len(before) != sum(key not in before for key in changed):
        changed += [key for key in before if key not in after]
    return changed


class ObjectIndex(NamedTuple):
    """Objects of a kind by what a function says of each, such as the Service that an EndpointSlice belongs to."""

    kind: GroupKind
    entries: Callable[[Json], Iterable[Hashable]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Objects are never changed: a newer snapshot has others in their place."""

    kinds: Mapping[GroupKind, Mapping[ObjectKey, Json]]
    _indexes: dict[ObjectIndex, dict[Hashable, list[Json]]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, documents: Iterable[Json]) -> Snapshot:
        """Return the snapshot of objects in any order; of two with one key the last counts."""
        kinds: dict[GroupKind, dict[ObjectKey, Json]] = {}
        for one in documents:
            kinds.setdefault(kind_of(one), {})[key_of(one)] = one
        return cls(kinds)

    def find(self, kind: GroupKind, namespace: str, name: str) -> Json | None:
        return self.kinds.get(kind, {}).get(ObjectKey(namespace, name))

    def oldest_first(self, kind: GroupKind) -> list[Json]:
        """Return the objects of a kind by age, then by namespace and name: the same order whatever was read first."""
        return sorted(self.kinds.get(kind, {}).values(), key=seniority)

    def indexed(self, index: ObjectIndex, entry: Hashable) -> list[Json]:
        """Return the objects that an index has at an entry, the oldest first."""
        if index not in self._indexes:
            found: dict[Hashable, list[Json]] = {}
            for one in self.oldest_first(index.kind):
                for each in dict.fromkeys(index.entries(one)):
                    found.setdefault(each, []).append(one)
            self._indexes[index] = found
        return self._indexes[index].get(entry, [])

    def remembered(
        self,
        key: Hashable,
        function: Callable[Concatenate[Snapshot, _Arguments], _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result:
        """Return `function(self, *arguments)`, a pure function of this snapshot and its arguments.

        A snapshot that remembers (translate/memory) calls it again only when what it read has changed, or an argument.
        `key` is one of its own among those asked for by the same caller.
        """
        return function(self, *arguments, **named)

    def labels_of_namespace(self, name: str) -> Mapping[str, str]:
        found = self.find(NAMESPACE, "", name)
        # The API server sets this one; a namespace that has not been read yet is known by it.
        known = {"kubernetes.io/metadata.name": name}
        return known if found is None else {**known, **(found["metadata"].get("labels") or {})}
