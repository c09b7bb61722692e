"""What a store that gateways share is asked about limits of virtual keys, as values.

The store has one number for each limit and window: `taken`, all that gateways have leased of it and not given back. A
lease is taken before it is spent, so what all of them spend is never more than the limit. A gateway that is killed
gives nothing back: what it held counts as spent, since it probably was, until the window ends.

Money is leased in millionths of a dollar, so that every store has room for it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

# Picodollars of a millionth of a dollar.
MICRO: Final = 10**6
# How much of what is left a lease may take beyond what is wanted: one part of so many.
SPARE_PARTS: Final = 4


class BudgetFailure(Exception):
    """The store did not answer, or not in time; the text says why and has no secret."""


class Budget(NamedTuple):
    """A limit in a window: of a key or a team (`scope`), by unit, with its start and end in Unix seconds."""

    scope: str
    name: str
    window: str
    unit: str
    start_s: int
    end_s: int


class LeaseQuestion(NamedTuple):
    """One question about a limit. `most` is the limit, `floor` what is known to be taken of it at least.

    At least `least` is wanted, best `total`, and `extra` beyond that if there is enough. `force` is taken whatever is
    there: it has been spent. `back` is given back. `rejoin` is what this gateway holds of a store that has lost its
    memory.
    """

    budget: Budget
    most: int = 0
    floor: int = 0
    least: int = 0
    total: int = 0
    extra: int = 0
    force: int = 0
    back: int = 0
    rejoin: int = 0


class LeaseAnswer(NamedTuple):
    """What was granted, and what is left in the store."""

    granted: int
    left: int
