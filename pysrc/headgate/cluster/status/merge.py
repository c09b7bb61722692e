"""What a status becomes when this controller's part is put into it.

https://gateway-api.sigs.k8s.io/geps/gep-1364/ and https://gateway-api.sigs.k8s.io/geps/gep-713/: who owns which part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from headgate.cluster.snapshot import OWN, Json
from headgate.cluster.translate.gateway import CONTROLLER

MOST_CONDITIONS: Final = 8
MOST_ENTRIES: Final = {"parents": 32, "ancestors": 16}
# Conditions of other types are those of other programs.
_OWN_TYPES: Final = frozenset((
    "Accepted", "Attached", "Conflicted", "InsecureFrontendValidationMode", "OverlappingTLSConfig", "PartiallyInvalid",
    "Programmed", "ResolvedRefs", "StatusSummarized", "SupportedVersion",
))  # fmt: skip
Decides = Callable[[Json], bool]
_REFERENCE: Final = {"parents": "parentRef", "ancestors": "ancestorRef"}


def _of_nothing(_reference: Json) -> bool:
    return False


def merged(before: Json, wanted: Json, now: str, decides: Decides = _of_nothing) -> Json:
    """Return the fields of a status that are to be written; empty if it is as it is wanted.

    `before`: the status that the object has. `now`: the time of conditions that change (RFC 3339). `decides`: tells
    whether an entry without the name of a controller is about something that this one decides about.
    """
    written: Json = {}
    for name, value in wanted.items():
        old = before.get(name)
        match name:
            case "conditions":
                new: Any = conditions(old or [], value, now)
            case "listeners":
                new = _listeners(old or [], value, now)
            case "parents" | "ancestors":
                new = _entries(name, old or [], value, now, decides)
            case _:
                new = value
        if new != (old if old is not None else type(new)()):
            written[name] = new
    return written


def emptied(before: Json, decides: Decides = _of_nothing) -> Json | None:
    """Return what a status wants that says something of this controller which no longer decides about it."""
    for name, reference in _REFERENCE.items():
        if any(_is_own(one, reference, [], decides) for one in before.get(name) or ()):
            return {name: []}
    return None


def conditions(before: list[Json], wanted: list[Json], now: str) -> list[Json]:
    """Return conditions, each with the time when its status changed last. Those of other programs are kept."""
    known = {one.get("type"): one for one in before}
    found = []
    for one in wanted[:MOST_CONDITIONS]:
        old = known.get(one["type"], {})
        since = old.get("lastTransitionTime") if old.get("status") == one["status"] else None
        found.append({**one, "lastTransitionTime": since or now})
    types = {one["type"] for one in found} | _OWN_TYPES
    others = [one for one in before if one.get("type") not in types]
    return found + others[: MOST_CONDITIONS - len(found)]


def _listeners(before: list[Json], wanted: list[Json], now: str) -> list[Json]:
    known = {one.get("name"): one for one in before}
    return [
        {**one, "conditions": conditions(known.get(one["name"], {}).get("conditions") or [], one["conditions"], now)}
        for one in wanted
    ]


def _entries(name: str, before: list[Json], wanted: list[Json], now: str, decides: Decides) -> list[Json]:
    """Return the entries of all controllers. Each stays where it was, and new ones come last."""
    reference = _REFERENCE[name]
    own = [_is_own(one, reference, wanted, decides) for one in before]
    left = [*_fitting(name, wanted, MOST_ENTRIES[name] - own.count(False))]
    found = []
    for old, ours in zip(before, own, strict=True):
        if not ours:
            found.append(old)
            continue
        new = next((one for one in left if one[reference] == old.get(reference)), None)
        if new is not None:
            left.remove(new)
            made = {**new, "conditions": conditions(old.get("conditions") or [], new["conditions"], now)}
            # A server that does not store the name would not store it the next time either.
            stored = {key: one for key, one in made.items() if key in old or key != "controllerName"}
            found.append(old if stored == old else made)
    return found + [{**one, "conditions": conditions([], one["conditions"], now)} for one in left]


def _is_own(entry: Json, reference: str, wanted: list[Json], decides: Decides) -> bool:
    """Tell whether an entry is of this controller. Older definitions of InferencePools have no name of a controller: an
    entry without one is ours if it is about something that we decide about."""
    name, about = entry.get("controllerName"), entry.get(reference) or {}
    return name == CONTROLLER or (not name and (any(one[reference] == about for one in wanted) or decides(about)))


def _fitting(name: str, wanted: list[Json], room: int) -> list[Json]:
    """Return the entries for which there is room; the last then says how many are left out."""
    if len(wanted) <= room:
        return wanted
    if room <= 0:
        return []
    if name != "ancestors":
        return wanted[:room]
    about = wanted[room - 1]["conditions"][0]
    summary = {
        "type": "StatusSummarized",
        "status": "True",
        "reason": "StatusSummarized",
        "message": f"{len(wanted) - room + 1} more entries are left out",
        "observedGeneration": about["observedGeneration"],
    }
    reference = {"group": OWN, "kind": "GatewayPolicy", "name": "StatusSummary"}
    return [*wanted[: room - 1], {"ancestorRef": reference, "controllerName": CONTROLLER, "conditions": [summary]}]
