"""ReferenceGrants: which references may lead into another namespace.

https://gateway-api.sigs.k8s.io/api-types/referencegrant/
"""

from __future__ import annotations

from headgate.cluster.snapshot import REFERENCE_GRANT, GroupKind, ObjectKey, Snapshot


def permitted(snapshot: Snapshot, holder: GroupKind, namespace: str, target: GroupKind, key: ObjectKey) -> bool:
    """Tell whether an object of kind `holder` in `namespace` may refer to `target` at `key`."""
    if namespace == key.namespace:
        return True
    for grant in snapshot.kinds.get(REFERENCE_GRANT, {}).values():
        if grant["metadata"]["namespace"] != key.namespace:
            continue
        origins = {(one["group"], one["kind"], one["namespace"]) for one in grant["spec"]["from"]}
        if (*holder, namespace) not in origins:
            continue
        for one in grant["spec"]["to"]:
            if GroupKind(one["group"], one["kind"]) == target and one.get("name") in (None, "", key.name):
                return True
    return False
