"""Which objects the last translation has seen, and which Gateways are this controller's."""

from __future__ import annotations

from collections.abc import Collection

from headgate.cluster.snapshot import GATEWAY, INFERENCE_POOL, GroupKind, Json, ObjectKey, Snapshot


class LastTranslation:
    """What the statuses that are wanted were said of. `gateways`: those that this controller decides about."""

    def __init__(self, snapshot: Snapshot, gateways: Collection[ObjectKey]) -> None:
        self._snapshot = snapshot
        self._gateways = gateways

    def uid(self, kind: GroupKind, key: ObjectKey) -> str:
        """Return the uid of the object that was seen; "" if there was none."""
        found = self._snapshot.find(kind, *key)
        return "" if found is None else str(found["metadata"].get("uid", ""))

    def decides(self, kind: GroupKind, key: ObjectKey, reference: Json) -> bool:
        """Tell whether an entry about something, in the status of an object, is this controller's though it does not
        say whose it is: older definitions of InferencePools store no name of a controller."""
        if kind != INFERENCE_POOL or reference.get("kind", GATEWAY.kind) != GATEWAY.kind:
            return False
        return ObjectKey(reference.get("namespace") or key.namespace, reference.get("name", "")) in self._gateways
