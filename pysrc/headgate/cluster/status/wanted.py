"""Which of the statuses that a translation gives are others than before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headgate.cluster.snapshot import GroupKind, Json, ObjectKey
from headgate.cluster.translate.conditions import ObjectStatus

# Entries of statuses that are taken away when nothing is said of an object any more.
_EMPTY: Final[Json] = {"parents": [], "ancestors": []}


class WantedStatuses:
    """The statuses of the last translation. It is used beside the loop: to look through ten thousand takes
    milliseconds."""

    def __init__(self) -> None:
        self._known: dict[tuple[GroupKind, ObjectKey], ObjectStatus] = {}

    def changed(self, statuses: Iterable[ObjectStatus]) -> list[ObjectStatus]:
        """Return those that differ from the last time, and empty ones of objects that are no longer among them."""
        known, found = self._known, []
        now: dict[tuple[GroupKind, ObjectKey], ObjectStatus] = {}
        for one in statuses:
            about = one[:2]
            before = known.get(about)
            if before is one or (before is not None and before.content == one.content):
                now[about] = before
                continue
            now[about] = one
            found.append(one)
        for about in known.keys() - now.keys():
            kept = {name: value for name, value in _EMPTY.items() if name in known[about].content}
            found.append(ObjectStatus(*about, kept))
        self._known = now
        return found
