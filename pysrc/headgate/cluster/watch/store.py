"""What is known of a cluster: snapshots of it, and the statuses that its objects have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from headgate.cluster.snapshot import NAMESPACE, GroupKind, Json, ObjectKey, Snapshot, key_of
from headgate.cluster.translate.selectors import selects
from headgate.cluster.watch.kinds import Kept, WatchedKind

_NOBODY: Final[dict[ObjectKey, Json]] = {}


class Stored(NamedTuple):
    """The version of an object and its status, as they were read last."""

    version: str
    status: Json


class Store:
    """Objects by kind. `changed` is called when a snapshot would differ from the one before; `judged` for an object
    whose status or version is another. `selectors`: of namespaces whose objects are looked at, one of which is enough;
    without one all are. Objects without a namespace always are."""

    def __init__(
        self,
        kinds: Iterable[WatchedKind],
        changed: Callable[[], None],
        judged: Callable[[GroupKind, ObjectKey], None] = lambda _kind, _key: None,
        selectors: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._objects: dict[GroupKind, dict[ObjectKey, Json]] = {one.kind: {} for one in kinds}
        self._stored: dict[GroupKind, dict[ObjectKey, Stored]] = {one.kind: {} for one in kinds if one.judged}
        self._changed = changed
        self._judged = judged
        self._selectors = selectors
        # What snapshots have: not to be changed any more.
        self._shown: dict[GroupKind, dict[ObjectKey, Json]] = {}
        self._namespaces: frozenset[str] | None = None
        self._filtered: dict[GroupKind, tuple[dict[ObjectKey, Json], dict[ObjectKey, Json]]] = {}

    def apply(self, kind: GroupKind, found: Kept) -> None:
        """Take an object that is new or has changed."""
        if self._take(self._objects[kind], kind, found):
            self._mark(kind)

    def remove(self, kind: GroupKind, key: ObjectKey) -> None:
        if (stored := self._stored.get(kind)) is not None:
            stored.pop(key, None)
        if self._objects[kind].pop(key, None) is not None:
            self._mark(kind)

    def replace(self, kind: GroupKind, found: Iterable[Kept]) -> None:
        """Take all objects of a kind: others are gone."""
        known = self._objects[kind]
        differs = False
        seen = set()
        for one in found:
            differs |= self._take(known, kind, one)
            seen.add(key_of(one.document))
        for key in known.keys() - seen:
            del known[key]
            if (stored := self._stored.get(kind)) is not None:
                stored.pop(key, None)
            differs = True
        if differs:
            self._mark(kind)

    def stored(self, kind: GroupKind, key: ObjectKey) -> Stored | None:
        """Return the version and the status of an object; None if there is no such object."""
        return self._stored.get(kind, {}).get(key)

    def all_stored(self) -> Iterable[tuple[GroupKind, ObjectKey, Stored]]:
        for kind, found in self._stored.items():
            for key, one in found.items():
                yield kind, key, one

    def snapshot(self) -> Snapshot:
        """Return what is known now. Kinds that have not changed are the same mappings as in the snapshot before."""
        for kind, found in self._objects.items():
            if kind not in self._shown:
                self._shown[kind] = found.copy()
        if self._selectors:
            return self._selected()
        return Snapshot(self._shown.copy())

    def counts(self) -> dict[GroupKind, int]:
        return {kind: len(found) for kind, found in self._objects.items()}

    def _take(self, known: dict[ObjectKey, Json], kind: GroupKind, found: Kept) -> bool:
        """Return whether what is translated has changed."""
        key = key_of(found.document)
        if found.status is not None:
            now = Stored(found.version, found.status)
            before = self._stored[kind].get(key)
            self._stored[kind][key] = now
            if before is not None and before != now:
                self._judged(kind, key)
        if known.get(key) == found.document:
            return False  # only a status or what nobody reads: the object stays the same one
        known[key] = found.document
        return True

    def _mark(self, kind: GroupKind) -> None:
        self._shown.pop(kind, None)
        self._changed()

    def _selected(self) -> Snapshot:
        labels = Snapshot({NAMESPACE: self._shown[NAMESPACE]})
        names = frozenset(
            key.name
            for key in self._shown[NAMESPACE]
            if any(selects(one, labels.labels_of_namespace(key.name)) for one in self._selectors)
        )
        if names != self._namespaces:
            self._namespaces, self._filtered = names, {}
        found: dict[GroupKind, dict[ObjectKey, Json]] = {}
        for kind, shown in self._shown.items():
            origin, chosen = self._filtered.get(kind, (_NOBODY, _NOBODY))
            if origin is not shown:
                chosen = {key: one for key, one in shown.items() if not key.namespace or key.namespace in names}
                self._filtered[kind] = (shown, chosen)
            found[kind] = chosen
        return Snapshot(found)
