"""Host names at listeners that belong either to HTTPRoutes or to GRPCRoutes: the older route has them.

https://gateway-api.sigs.k8s.io/reference/spec/#grpcroutespec (hostnames)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headgate.cluster.snapshot import ObjectKey, key_of, kind_of
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.parents import Attachment


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


def _around(pattern: str) -> Iterator[str]:
    """Return the patterns that have all names of a pattern and more; the empty one has all."""
    labels = pattern.removeprefix("*.").split(".") if pattern else []
    if pattern.startswith("*."):
        labels = ["*", *labels]
    for index in range(1, len(labels)):
        name = "*." + ".".join(labels[index:])
        if name != pattern:
            yield name
    if pattern:
        yield ""


class Claims:
    """Of one Gateway. Routes are asked for from the oldest to the newest."""

    def __init__(self) -> None:
        # By listener and kind of route.
        self._held: dict[tuple[str, str], _Held] = {}

    def left(self, route: Json, attached: list[Attachment]) -> list[Attachment] | Unmet:
        """Return the attachments where no older route of another kind has names of the route; without any, why."""
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
            if listener == attachment.listener.name and other != kind:
                for pattern in _patterns(attachment):
                    if (holder := held.overlapping(pattern)) is not None:
                        return holder
        return None

    def hold(self, route: Json, attached: list[Attachment]) -> None:
        """Note where a route that is accepted is attached."""
        for one in attached:
            held = self._held.setdefault((one.listener.name, kind_of(route).kind), _Held())
            for pattern in _patterns(one):
                held.add(pattern, key_of(route))


def _patterns(attachment: Attachment) -> tuple[str, ...]:
    return attachment.hostnames or (attachment.listener.hostname,)
