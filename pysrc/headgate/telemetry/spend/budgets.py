"""What a store that gateways share is asked about limits of virtual keys, as values.

The store has one number for each limit and window: `taken`, all that gateways have leased of it and not given back. A
lease is taken before it is spent, so what all of them spend is never more than the limit.

Of a gateway that is killed the store takes back what it had `lent`: what was reserved for requests under way when it
was heard last, and they have ended with it. The rest counts as spent until the window ends, since it may have been. A
gateway that was only cut off does without what it has lent some time before the store takes it back. Only how fast
clocks run has to agree for that, not what they show.

Money is leased in millionths of a dollar, so that every store has room for it.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

# Picodollars of a millionth of a dollar.
MICRO: Final = 10**6
# How much of what is left a lease may take beyond what is wanted: one part of so many.
SPARE_PARTS: Final = 4
# After how long without a word of a gateway a store takes back what that has lent, and after how long without an answer
# the gateway does without. It asks once a second; the difference is for processes that stand still and clocks that
# drift.
EXPIRE_SECONDS: Final = 10
FENCE_SECONDS: Final = 5


class Standing(enum.Enum):
    """What a store knows of a gateway: what was reported; nothing, since it has lost its data; that it was silent for
    EXPIRE_SECONDS, so that what it had lent is given to others.
    """

    KNOWN = "known"
    LOST = "lost"
    EXPIRED = "expired"


class BudgetFailure(Exception):
    """The store did not answer, or not in time; the text says why and has no secret."""


class LeaseExpired(BudgetFailure):
    """The store has taken back the lease of this gateway. Nothing is answered before heard() has noted it."""


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
    memory. `lent` is what the store takes back when it does not hear of this gateway any more, instead of what it was
    told before.
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
    lent: int = 0


class LeaseAnswer(NamedTuple):
    """What was granted, and what is left in the store."""

    granted: int
    left: int
