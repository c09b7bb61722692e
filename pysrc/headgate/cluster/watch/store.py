"""What is known of a cluster: snapshots of it, and the statuses that its objects have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from headgate.cluster.snapshot import NAMESPACE, GroupKind, Json, ObjectKey, Snapshot, key_of
from headgate.cluster.translate.selectors import selects
from headgate.cluster.watch.kinds import Kept, WatchedKind


class Stored(NamedTuple):
    """The version of an object and its status, as they were read last. `uid`: another one for each object of a name."""

    version: str
    status: Json
    uid: str


class Store:
    """Objects by kind. `changed` is called when a snapshot would differ from the one before; `judged` for an object
    that is new, or whose status or version is another. `selectors`: of namespaces whose objects are looked at, one of
    which is enough; without one all are. Objects without a namespace always are. Of others nothing is kept, so that
    they have to be listed when their namespace becomes visible: `appeared` is called then."""

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
        self.appeared: Callable[[], None] = lambda: None
        self._selectors = selectors
        # Namespaces that are looked at; None: all.
        self._visible: frozenset[str] | None = frozenset() if selectors else None
        # What snapshots have: not to be changed any more.
        self._shown: dict[GroupKind, dict[ObjectKey, Json]] = {}

    @property
    def selective(self) -> bool:
        """Tell whether some namespaces are not looked at: they have to be known before anything in them."""
        return self._visible is not None

    def shows(self, namespace: str) -> bool:
        """Tell whether objects of a namespace are kept; "" is that of objects without one."""
        return self._visible is None or not namespace or namespace in self._visible

    def apply(self, kind: GroupKind, found: Kept) -> None:
        """Take an object that is new or has changed."""
        if self.shows(key_of(found.document).namespace) and self._take(self._objects[kind], kind, found):
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
            key = key_of(one.document)
            if self.shows(key.namespace):
                differs |= self._take(known, kind, one)
                seen.add(key)
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

    def version_of(self, kind: GroupKind, key: ObjectKey) -> str | None:
        """Return the `apiVersion` that an object is served as; None if there is no such object."""
        found = self._objects.get(kind, {}).get(key)
        return None if found is None else str(found["apiVersion"])

    def all_stored(self) -> Iterable[tuple[GroupKind, ObjectKey, Stored]]:
        for kind, found in self._stored.items():
            for key, one in found.items():
                yield kind, key, one

    def snapshot(self) -> Snapshot:
        """Return what is known now. Kinds that have not changed are the same mappings as in the snapshot before."""
        for kind, found in self._objects.items():
            if kind not in self._shown:
                self._shown[kind] = found.copy()
        return Snapshot(self._shown.copy())

    def counts(self) -> dict[GroupKind, int]:
        return {kind: len(found) for kind, found in self._objects.items()}

    def _take(self, known: dict[ObjectKey, Json], kind: GroupKind, found: Kept) -> bool:
        """Return whether what is translated has changed."""
        key = key_of(found.document)
        if found.status is not None:
            now = Stored(found.version, found.status, found.document["metadata"].get("uid", ""))
            before = self._stored[kind].get(key)
            self._stored[kind][key] = now
            # One that is new may have been there before, deleted and made again in one moment: it lacks its status.
            if before != now:
                self._judged(kind, key)
        if known.get(key) == found.document:
            return False  # only a status or what nobody reads: the object stays the same one
        known[key] = found.document
        return True

    def _mark(self, kind: GroupKind) -> None:
        self._shown.pop(kind, None)
        if kind == NAMESPACE and self._visible is not None:
            self._look(self._visible)
        self._changed()

    def _look(self, before: frozenset[str]) -> None:
        """Find out which namespaces are looked at now, and forget what is in the others."""
        known = Snapshot({NAMESPACE: self._objects[NAMESPACE]})
        names = frozenset(
            key.name
            for key in self._objects[NAMESPACE]
            if any(selects(one, known.labels_of_namespace(key.name)) for one in self._selectors)
        )
        self._visible = names
        if before - names:
            for kind, objects in self._objects.items():
                for key in [key for key in objects if not self.shows(key.namespace)]:
                    self.remove(kind, key)
        if names - before:
            self.appeared()
