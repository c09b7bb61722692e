"""Host names at listeners that only one route, or one kind of route, can have: the older route has them.

They belong either to HTTPRoutes or to GRPCRoutes (https://gateway-api.sigs.k8s.io/reference/spec/#grpcroutespec,
hostnames). Where connections are routed nothing but the host name tells them apart, so each belongs to one route.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from headgate.cluster.snapshot import TCP_ROUTE, TLS_ROUTE, ObjectKey, key_of, kind_of
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.parents import Attachment

_OF_CONNECTIONS: Final = (TLS_ROUTE, TCP_ROUTE)
# Host names whose wider patterns are kept.
_KEPT: Final = 4_096


@dataclass(slots=True)
class _Held:
    """Which route has a pattern first. `wider`: by each pattern that has others in it, a route of one of those."""

    exactly: dict[str, ObjectKey] = field(default_factory=dict)
    wider: dict[str, ObjectKey] = field(default_factory=dict)

    def add(self, pattern: str, route: ObjectKey) -> None:
        self.exactly.setdefault(pattern, route)
        for one in _around(pattern):
            self.wider.setdefault(one, route)

    def overlapping(self, pattern: str) -> ObjectKey | None:
        """Return a route that has names of the pattern."""
        if found := self.exactly.get(pattern) or self.wider.get(pattern):
            return found
        return next((self.exactly[one] for one in _around(pattern) if one in self.exactly), None)


@lru_cache(_KEPT)
def _around(pattern: str) -> tuple[str, ...]:
    """Return the patterns that have all names of a pattern and more; the empty one has all."""
    labels = pattern.removeprefix("*.").split(".") if pattern else []
    if pattern.startswith("*."):
        labels = ["*", *labels]
    found = ["*." + ".".join(labels[index:]) for index in range(1, len(labels))]
    return (*(one for one in found if one != pattern), "") if pattern else ()


class Claims:
    """Of one Gateway. Routes are asked for from the oldest to the newest."""

    def __init__(self) -> None:
        # By listener and kind of route.
        self._held: dict[tuple[str, str], _Held] = {}
        # By listener and host name, for routes of connections.
        self._alone: dict[tuple[str, str], ObjectKey] = {}

    def left(self, route: Json, attached: list[Attachment]) -> list[Attachment] | Unmet:
        """Return the attachments where no older route has what only one can have; without any, why."""
        if kind_of(route) in _OF_CONNECTIONS:
            return self._left_alone(route, attached)
        kind = kind_of(route).kind
        found: list[Attachment] = []
        rivals: list[str] = []
        for one in attached:
            rival = self._rival(kind, one)
            if rival is None:
                found.append(one)
            else:
                rivals.append(f"listener {one.listener.name} has host names of the route for {rival} already")
        if found:
            return found
        return Unmet("HostnameConflict", f"{kind}s share no host name with other routes: {'; '.join(rivals)}")

    def _rival(self, kind: str, attachment: Attachment) -> ObjectKey | None:
        for (listener, other), held in self._held.items():
            if listener == attachment.listener.title and other != kind:
                for pattern in _patterns(attachment):
                    if (holder := held.overlapping(pattern)) is not None:
                        return holder
        return None

    def _left_alone(self, route: Json, attached: list[Attachment]) -> list[Attachment] | Unmet:
        found: list[Attachment] = []
        lost: dict[str, None] = {}
        for one in attached:
            holders = {name: self._alone.get((one.listener.title, name)) for name in one.hostnames or ("",)}
            free = tuple(name for name, holder in holders.items() if holder in (None, key_of(route)))
            if free:
                found.append(one._replace(hostnames=free if one.hostnames else ()))
            told = (f"{name or 'all'} of listener {one.listener.name}" for name in holders if name not in free)
            lost.update(dict.fromkeys(told))
        if found:
            return found
        return Unmet("HostnameConflict", f"older routes have its host names: {', '.join(sorted(lost))}")

    def hold(self, route: Json, attached: list[Attachment]) -> None:
        """Note where a route that is accepted is attached."""
        if kind_of(route) in _OF_CONNECTIONS:
            for one in attached:
                for name in one.hostnames or ("",):
                    self._alone.setdefault((one.listener.title, name), key_of(route))
            return
        kind, key = kind_of(route).kind, key_of(route)
        for one in attached:
            held = self._held.setdefault((one.listener.title, kind), _Held())
            for pattern in _patterns(one):
                held.add(pattern, key)


def _patterns(attachment: Attachment) -> tuple[str, ...]:
    return attachment.hostnames or (attachment.listener.hostname,)
