"""Translations that remember: of a new snapshot only what depends on a change is translated again.

What the translator asks for by `Snapshot.remembered` becomes a node of a tree, with the arguments, the result and a
note of everything that was read for it: objects, whole kinds, entries of indexes. A change marks the nodes that have
read it, and those above them. A node that is marked, or has other arguments, is computed again; what it asks for and
is not marked is there already. A result that equals the one before stays the same object, so whoever compares sees
that nothing has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from headgate.cluster.snapshot import GroupKind, Json, ObjectIndex, ObjectKey, Snapshot, differing, seniority
from headgate.cluster.translate.deployed import Placed
from headgate.cluster.translate.everything import World, everything
from headgate.cluster.translate.gateway import Acknowledged

_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")
# What is read: an object (kind and key), all of a kind (kind and None), or an entry of an index.
_Read = tuple[Hashable, Hashable]
_NONE: Final[Mapping[ObjectKey, Json]] = {}


class _Node:
    """`stale`: something that was read for it, or for a node below, has changed."""

    __slots__ = ("above", "arguments", "below", "reads", "result", "stale")

    def __init__(self, above: _Node | None) -> None:
        self.above = above
        self.arguments: tuple[Any, ...] = ()
        self.result: Any = None
        self.reads: set[_Read] = set()
        self.below: dict[Hashable, _Node] = {}
        self.stale = True


class TranslationMemory:
    """Translations of the snapshots of one cluster, one after the other. One thread at a time may use it.

    `global_policies`: see everything().
    """

    def __init__(self, global_policies: str = "") -> None:
        self._global_policies = global_policies
        self.computed = 0  # nodes that were computed for the last snapshot
        self._kinds: Mapping[GroupKind, Mapping[ObjectKey, Json]] = {}
        self._root = _Node(None)
        self._readers: dict[_Read, set[_Node]] = {}
        self._entries: dict[ObjectIndex, dict[Hashable, dict[ObjectKey, Json]]] = {}
        self._ordered: dict[GroupKind, tuple[Mapping[ObjectKey, Json], list[Json]]] = {}

    def translate(
        self,
        snapshot: Snapshot,
        acknowledged: Mapping[ObjectKey, Acknowledged],
        deployed: Mapping[ObjectKey, Placed] | None = None,
    ) -> World:
        """Return what `everything` returns for a snapshot, whose statuses may stand in another order."""
        self._advance(snapshot.kinds)
        self.computed = 0
        view = _View(self, snapshot.kinds)
        try:
            given = (acknowledged, deployed, self._global_policies)
            return self.compute(view, self._root, everything, given, {})  # type: ignore[no-any-return]
        except BaseException:
            # Half of the tree is of another snapshot than the rest.
            self._root = _Node(None)
            self._readers = {}
            raise

    def _advance(self, kinds: Mapping[GroupKind, Mapping[ObjectKey, Json]]) -> None:
        """Mark what has read anything that differs between the snapshot before and this one."""
        for kind in self._kinds.keys() | kinds.keys():
            before, after = self._kinds.get(kind, _NONE), kinds.get(kind, _NONE)
            if before is after:
                continue
            changed = differing(before, after)
            if changed:
                self._mark((kind, None))
                self._ordered.pop(kind, None)
            for key in changed:
                self._mark((kind, key))
            for index in [one for one in self._entries if one.kind == kind]:
                self._move(index, before, after, changed)
        self._kinds = kinds

    def _move(
        self,
        index: ObjectIndex,
        before: Mapping[ObjectKey, Json],
        after: Mapping[ObjectKey, Json],
        changed: list[ObjectKey],
    ) -> None:
        """Bring an index up to date."""
        entries = self._entries[index]
        for key in changed:
            if (old := before.get(key)) is not None:
                for entry in dict.fromkeys(index.entries(old)):
                    held = entries.get(entry, {})
                    held.pop(key, None)
                    if not held:
                        entries.pop(entry, None)
                    self._mark((index, entry))
            if (new := after.get(key)) is not None:
                for entry in dict.fromkeys(index.entries(new)):
                    entries.setdefault(entry, {})[key] = new
                    self._mark((index, entry))

    def _mark(self, read: _Read) -> None:
        for one in self._readers.get(read, ()):
            node: _Node | None = one
            while node is not None and not node.stale:
                node.stale = True
                node = node.above

    def compute(
        self, view: _View, node: _Node, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        """Compute a node anew."""
        self.computed += 1
        for read in node.reads:
            self._unread(read, node)
        known, node.reads, node.below = node.below, set(), {}
        caller, view.node, before = view.node, node, view.before
        view.before = known
        try:
            result = function(view, *arguments, **named)
        finally:
            view.node, view.before = caller, before
        for read in node.reads:
            self._readers.setdefault(read, set()).add(node)
        for gone in known.values():
            self._forget(gone)
        node.arguments, node.stale = (*arguments, *named.items()), False
        if node.above is None:
            return result
        if result != node.result:
            node.result = result
        return node.result

    def _unread(self, read: _Read, node: _Node) -> None:
        readers = self._readers.get(read)
        if readers is not None:
            readers.discard(node)
            if not readers:
                del self._readers[read]

    def _forget(self, node: _Node) -> None:
        for read in node.reads:
            self._unread(read, node)
        for one in node.below.values():
            self._forget(one)

    def oldest_first(self, kind: GroupKind) -> list[Json]:
        objects = self._kinds.get(kind, _NONE)
        known = self._ordered.get(kind)
        if known is None or known[0] is not objects:
            known = self._ordered[kind] = (objects, sorted(objects.values(), key=seniority))
        return known[1]

    def entry(self, index: ObjectIndex, entry: Hashable) -> list[Json]:
        if index not in self._entries:
            self._entries[index] = {}
            objects = self._kinds.get(index.kind, _NONE)
            self._move(index, _NONE, objects, list(objects))
        return sorted(self._entries[index].get(entry, {}).values(), key=seniority)


class _View(Snapshot):
    """A snapshot that notes, for the node that is computed, what is read. `before`: what that node had asked for."""

    __slots__ = ("_memory", "_objects", "before", "node")

    def __init__(self, memory: TranslationMemory, kinds: Mapping[GroupKind, Mapping[ObjectKey, Json]]) -> None:
        self._memory, self._objects = memory, kinds
        self.node, self.before = None, {}
        object.__setattr__(self, "kinds", _NotedKinds(self, kinds))

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    node: _Node | None
    before: dict[Hashable, _Node]

    def note(self, read: _Read) -> None:
        if self.node is not None:
            self.node.reads.add(read)

    def find(self, kind: GroupKind, namespace: str, name: str) -> Json | None:
        key = ObjectKey(namespace, name)
        self.note((kind, key))
        return self._objects.get(kind, _NONE).get(key)

    def oldest_first(self, kind: GroupKind) -> list[Json]:
        self.note((kind, None))
        return self._memory.oldest_first(kind)

    def indexed(self, index: ObjectIndex, entry: Hashable) -> list[Json]:
        self.note((index, entry))
        return self._memory.entry(index, entry)

    def remembered(
        self,
        key: Hashable,
        function: Callable[Concatenate[Snapshot, _Arguments], _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result:
        caller = self.node
        assert caller is not None
        node = self.before.pop(key, None)
        if node is None:
            if key in caller.below:
                raise ValueError(f"two things are remembered as {key}")
            node = _Node(caller)
        caller.below[key] = node
        if node.stale or node.arguments != (*arguments, *named.items()):
            self._memory.compute(self, node, function, arguments, named)
        result: _Result = node.result
        return result

    _memory: TranslationMemory
    _objects: Mapping[GroupKind, Mapping[ObjectKey, Json]]


class _NotedKinds(Mapping[GroupKind, Mapping[ObjectKey, Json]]):
    """Objects by kind. Who takes a kind may read all of it."""

    def __init__(self, view: _View, kinds: Mapping[GroupKind, Mapping[ObjectKey, Json]]) -> None:
        self._view = view
        self._kinds = kinds

    def __getitem__(self, kind: GroupKind) -> Mapping[ObjectKey, Json]:
        self._view.note((kind, None))
        return self._kinds[kind]

    def __iter__(self) -> Iterator[GroupKind]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)
