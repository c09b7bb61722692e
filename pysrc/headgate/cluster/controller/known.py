"""What statuses already say of Gateways, for as long as this process has not been told anything else.

A controller that has just begun has no stream yet, and one that leads since a moment has deployed nothing. Neither
takes from a Gateway what was true before: `Programmed` would go and come back, for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from headgate.cluster.snapshot import Json, ObjectKey
from headgate.cluster.translate.deployed import Placed, Placement
from headgate.cluster.translate.gateway import Acknowledged

# Seconds that data planes have for coming back: the longest pause before one connects again, varied by a half (15 s and
# 7.5 s, `deliver/data_plane.py`).
RETURN_S: Final = 22.5
_NOTHING: Final = Acknowledged()
Stored = Callable[[ObjectKey], Json]


def with_known_answers(
    said: Mapping[ObjectKey, Acknowledged], gateways: Iterable[ObjectKey], stored: Stored
) -> dict[ObjectKey, Acknowledged]:
    """Return what data planes have said, and where none has, what the status of the Gateway says of them. `stored`
    returns the status of a Gateway."""
    found = dict(said)
    for key in gateways:
        if found.get(key, _NOTHING) == _NOTHING and (generation := _programmed(stored(key))) is not None:
            found[key] = Acknowledged(generation)
    return found


def with_known_addresses(
    placed: Mapping[ObjectKey, Placed], gateways: Iterable[ObjectKey], stored: Stored
) -> dict[ObjectKey, Placed]:
    """Return what has been deployed, and the addresses in the status of a Gateway that has not been looked at."""
    found = dict(placed)
    for key in gateways:
        if key not in found and (addresses := stored(key).get("addresses")):
            found[key] = Placement(tuple(addresses))
    return found


def _programmed(status: Json) -> int | None:
    """Return the generation that a status says is programmed."""
    for one in status.get("conditions") or ():
        if one.get("type") == "Programmed" and one.get("status") == "True":
            generation = one.get("observedGeneration")
            return generation if isinstance(generation, int) else None
    return None
