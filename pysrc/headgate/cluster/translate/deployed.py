"""What has been deployed for a Gateway, as its status tells it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from headgate.cluster.translate.conditions import Condition, Unmet, fails
from headgate.cluster.translate.fragments import Json


class Placed(Protocol):
    """`addresses`: as in the `status.addresses` of a Gateway. `refusal`: why there is nothing, or not what was asked
    for; then `condition` is the one that does not hold: `Accepted` (the parameters are wrong) or `Programmed`.
    `generation`: of the Gateway that was looked at; 0 for none."""

    @property
    def addresses(self) -> tuple[Json, ...]: ...

    @property
    def refusal(self) -> Unmet | None: ...

    @property
    def condition(self) -> str: ...

    @property
    def generation(self) -> int: ...


class Placement(NamedTuple):
    """A Placed; by default of a Gateway that nothing is there for yet."""

    addresses: tuple[Json, ...] = ()
    refusal: Unmet | None = None
    condition: str = "Programmed"
    generation: int = 0


def undeployed(placed: Placed) -> Condition | None:
    """Return the condition Programmed of a Gateway that cannot be reached; None if it can."""
    if placed.refusal is not None:
        return fails("Programmed", placed.refusal)
    if not placed.addresses:
        return fails("Programmed", Unmet("AddressNotAssigned", "no address has been assigned to the Gateway yet"))
    return None


def observed(placed: Placed | None, about: int) -> int:
    """Return which generation of a Gateway is told about where that depends on what is there.

    It is not the newest one until that has been looked at: who waits for a condition of the newest generation reads
    addresses beside it, which are those of the generation before.
    """
    return about if placed is None or placed.generation == 0 else min(about, placed.generation)
