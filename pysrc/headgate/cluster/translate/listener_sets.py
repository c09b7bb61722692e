"""ListenerSets: which of them a Gateway takes, and their statuses.

https://gateway-api.sigs.k8s.io/geps/gep-1713/
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.cluster.snapshot import LISTENER_SET, Snapshot, generation, key_of
from headgate.cluster.translate.conditions import Condition, ObjectStatus, Unmet, fails, holds
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.listeners import ListenerState
from headgate.cluster.translate.parents import inside


def taken(snapshot: Snapshot, gateway: Json, found: Json) -> bool:
    """Tell whether a Gateway takes a ListenerSet that names it: unless it says so, it takes none."""
    rule = (gateway["spec"].get("allowedListeners") or {}).get("namespaces") or {}
    return inside(snapshot, rule, "None", key_of(found).namespace, key_of(gateway).namespace)


def refused(gateway: Json, found: Json) -> ObjectStatus:
    """Return the status of a ListenerSet that its Gateway does not take."""
    message = f"Gateway {key_of(gateway)} takes no ListenerSets of namespace {key_of(found).namespace}"
    return _status(found, _both(Unmet("NotAllowed", message)), [])


def accepted_by(accepted: Condition, known: list[ListenerState]) -> Condition:
    """Return whether a ListenerSet is accepted. `accepted`: the Gateway's own condition; `known`: its listeners."""
    bad = [one.name for one in known if not one.served]
    message = f"listeners with faults: {', '.join(bad)}"
    if bad and len(bad) == len(known):
        return fails("Accepted", Unmet("ListenersNotValid", message))
    if not accepted.holds:
        return fails("Accepted", Unmet("ParentNotAccepted", f"its Gateway is not accepted: {accepted.message}"))
    if bad:
        return Condition("Accepted", True, "ListenersNotValid", message)
    return holds("Accepted", "Accepted", "Successfully accepted ListenerSet")


def status(
    found: Json, accepted: Condition, programmed: Condition, entries: Sequence[Json]
) -> ObjectStatus:
    """Return the status of a ListenerSet that its Gateway takes. `programmed`: the Gateway's own condition."""
    if not accepted.holds:
        return _status(found, _both(Unmet(accepted.reason, accepted.message)), entries)
    if programmed.holds:
        programmed = programmed._replace(message="Successfully programmed ListenerSet")
    return _status(found, [accepted, programmed], entries)


def _both(refusal: Unmet) -> list[Condition]:
    return [fails("Accepted", refusal), fails("Programmed", refusal)]


def _status(found: Json, conditions: list[Condition], entries: Sequence[Json]) -> ObjectStatus:
    about = generation(found)
    content = {"conditions": [one.printed(about) for one in conditions], "listeners": list(entries)}
    return ObjectStatus(LISTENER_SET, key_of(found), content)
