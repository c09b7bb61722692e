"""Which of the statuses that a translation gives are others than before."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

from headgate.cluster.snapshot import GroupKind, Json, ObjectKey
from headgate.cluster.translate.conditions import ObjectStatus

# Entries of statuses that are taken away when nothing is said of an object any more.
_EMPTY: Final[Json] = {"parents": [], "ancestors": []}
About = tuple[GroupKind, ObjectKey]
_NOTHING: Final[Sequence[ObjectStatus]] = ()


class WantedStatuses:
    """The statuses of the last translation, in its groups (`World.groups`). An object is in one group at a time. Only
    groups that are other objects than before are looked through, so a change costs what is in those that it touches.
    It is used beside the loop: the first translation has ten thousand.
    """

    def __init__(self) -> None:
        self._groups: dict[Hashable, Sequence[ObjectStatus]] = {}
        self._known: dict[About, ObjectStatus] = {}
        # The group that each object is in.
        self._places: dict[About, Hashable] = {}
        self.compared = 0  # statuses that were looked at the last time

    def changed(self, groups: Mapping[Hashable, Sequence[ObjectStatus]]) -> list[ObjectStatus]:
        """Return those that differ from the last time, and empty ones of objects that are no longer among them."""
        before = self._groups
        touched = [name for name, found in groups.items() if before.get(name) is not found]
        touched += [name for name in before if name not in groups]
        self.compared = 0
        found: list[ObjectStatus] = []
        for name in touched:
            found += self._taken(name, groups.get(name, _NOTHING))
        # Last: what has left one group may have come to another.
        for name in touched:
            found += self._gone(name, groups.get(name, _NOTHING))
        self._groups = dict(groups)
        return found

    def _taken(self, name: Hashable, statuses: Sequence[ObjectStatus]) -> Iterator[ObjectStatus]:
        self.compared += len(statuses)
        for one in statuses:
            about = one[:2]
            self._places[about] = name
            known = self._known.get(about)
            if known is not one and (known is None or known.content != one.content):
                self._known[about] = one
                yield one

    def _gone(self, name: Hashable, statuses: Sequence[ObjectStatus]) -> Iterator[ObjectStatus]:
        left = {one[:2] for one in self._groups.get(name, _NOTHING)}.difference(one[:2] for one in statuses)
        for about in left:
            if self._places[about] == name:
                del self._places[about]
                content = self._known.pop(about).content
                yield ObjectStatus(*about, {key: value for key, value in _EMPTY.items() if key in content})
