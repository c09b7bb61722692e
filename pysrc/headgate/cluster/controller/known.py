"""What statuses already say of Gateways, for as long as this process has not been told anything else.

A controller that has just begun has no stream yet, and one that leads since a moment has deployed nothing. Neither
takes from a Gateway what was true before: `Programmed` would go and come back, for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from headgate.cluster.snapshot import Json, ObjectKey
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.deployed import Placed, Placement
from headgate.cluster.translate.gateway import Acknowledged

# Seconds that data planes have for coming back: twice the longest pause before one connects again, varied by a half
# (15 s and 7.5 s, `deliver/data_plane.py`), and a try between them that comes to nothing (10 s), as at a busy machine.
RETURN_S: Final = 55.0
_NOTHING: Final = Acknowledged()
# Conditions that only the deployer brings about.
_OF_DEPLOYER: Final = frozenset((("Programmed", "DeploymentFailed"), ("Accepted", "InvalidParameters")))
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
    """Return what has been deployed, and of a Gateway that has not been looked at what its status says: addresses, and
    why it could not be deployed."""
    found = dict(placed)
    for key in gateways:
        if key in found:
            continue
        status = stored(key)
        addresses = tuple(status.get("addresses") or ())
        failed = _failed(status)
        if failed is not None:
            refusal = Unmet(failed["reason"], failed.get("message", ""))
            found[key] = Placement(addresses, refusal, failed["type"], failed.get("observedGeneration") or 0)
        elif addresses:
            found[key] = Placement(addresses)
    return found


def _failed(status: Json) -> Json | None:
    """Return the condition of a status that tells of a data plane which could not be deployed."""
    for one in status.get("conditions") or ():
        if one.get("status") == "False" and (one.get("type"), one.get("reason")) in _OF_DEPLOYER:
            return dict(one)
    return None


def _programmed(status: Json) -> int | None:
    """Return the generation that a status says is programmed."""
    for one in status.get("conditions") or ():
        if one.get("type") == "Programmed" and one.get("status") == "True":
            generation = one.get("observedGeneration")
            return generation if isinstance(generation, int) else None
    return None
