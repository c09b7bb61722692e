"""What a gateway has leased of the limits of one virtual key or team, and what it asks and tells a store of that.

Times are in Unix seconds.
"""

from __future__ import annotations

import itertools
import time
from typing import Final

from headgate.policy.leases import LeaseWant
from headgate.telemetry.spend.budgets import MICRO, Budget, LeaseAnswer, LeaseQuestion
from headgate_engine.limit.account import UNITS, WINDOWS, UsageAccount
from headgate_engine.shared.segment import Segment

# How long it is believed that a store had no more, in nanoseconds.
SHORT_NS: Final = 50_000_000
# A lease holds what was used within so many seconds.
AHEAD: Final = 2
PLACES: Final = tuple(itertools.product(WINDOWS, UNITS))
Place = tuple[str, str]


class LeasedAccount:
    """An account that has leased of some limits."""

    def __init__(self, segment: Segment, scope: str, name: str) -> None:
        self.scope, self.name = scope, name
        self.account = UsageAccount(segment, scope, name)
        self.idle = 0
        # By window and unit: the window's start and what was used then, at the last look; and what was used since the
        # one before.
        self._used: dict[Place, tuple[int, int]] = {}
        self._recent: dict[Place, int] = {}
        # Where the store was told of something that it may take back.
        self._lending: set[Place] = set()

    @property
    def lends(self) -> bool:
        """Whether the store takes something back when this gateway is killed."""
        return bool(self._lending)

    def wants(self, place: Place, wants: list[LeaseWant], now: int) -> LeaseQuestion | None:
        """Return the question for what requests want of a limit; None if it is there by now."""
        start, end, left, _, leased, others = self.account.terms(*place, now)
        least, total = min(one.least for one in wants) - left, sum(one.total for one in wants) - left
        if least <= 0 and total <= 0:
            return None
        scale = scale_of(place)
        return LeaseQuestion(
            Budget(self.scope, self.name, *place, start, end), most=max(one.most for one in wants) // scale,
            floor=_up(others + leased, scale), least=_up(max(least, 0), scale), total=_up(total, scale),
            extra=_up(AHEAD * self._recent.get(place, 0), scale),
            lent=self.account.lends(place, start, scale)[0] // scale,
        )  # fmt: skip

    def asks(self, question: LeaseQuestion) -> None:
        """Give up what the store may take back: what was reported last, or now if that is more, until it answers."""
        budget = question.budget
        place, start = (budget.window, budget.unit), budget.start_s
        scale = scale_of(place)
        told = self.account.lends(place, start, scale)[1]
        self.account.lend(place, start, max(told, question.lent * scale))

    def took(self, question: LeaseQuestion, answer: LeaseAnswer) -> None:
        """Note what was granted."""
        place = (question.budget.window, question.budget.unit)
        scale = scale_of(place)
        short = answer.granted < question.total
        until = time.monotonic_ns() + SHORT_NS if short else 0
        start = question.budget.start_s
        self.account.lease(place, start, answer.granted * scale, answer.left * scale, until)
        self.account.lend(place, start, question.lent * scale)
        if question.lent:
            self._lending.add(place)
        else:
            self._lending.discard(place)

    def tended(self, now: int, *, end: bool = False) -> list[LeaseQuestion]:
        """Give back what is not used, all of it at the `end`; tell what was used beyond, and what is reserved."""
        found = []
        busy = False
        for place in PLACES:
            start, stop, _, own, leased, others = self.account.terms(*place, now)
            if not own and not leased and place not in self._lending:
                continue
            scale = scale_of(place)
            before = self._used.get(place, (start, own))
            recent = own - before[1] if before[0] == start else own
            self._used[place], self._recent[place] = (start, own), max(recent, 0)
            back = self.account.give_back(place, start, 0 if end else AHEAD * max(recent, 0), scale)
            leased -= back
            force = _up(own - leased, scale) if leased and own > leased else 0
            busy = busy or recent > 0 or leased > own
            lent, told = self.account.lends(place, start, scale)
            # At the end nobody is there who would tell what becomes of it.
            lent = 0 if end else lent
            # Of a window that has ended, too: nothing else has the store forget what was lent in it.
            if back or force or lent != told or (not lent and place in self._lending):
                budget = Budget(self.scope, self.name, *place, start, stop)
                floor = _up(others + leased, scale)
                found.append(LeaseQuestion(budget, floor=floor, force=force, back=back // scale, lent=lent // scale))
        self.idle = 0 if busy else self.idle + 1
        return found

    def tells(self, now: int) -> list[LeaseQuestion]:
        """Tell what the store may take back, if it would take back what has been spent by now."""
        if not self.account.exposed(now):
            return []
        found = []
        for place in PLACES:
            start, stop, _, _, leased, others = self.account.terms(*place, now)
            scale = scale_of(place)
            lent, told = self.account.lends(place, start, scale)
            if lent != told:
                budget = Budget(self.scope, self.name, *place, start, stop)
                found.append(LeaseQuestion(budget, floor=_up(others + leased, scale), lent=lent // scale))
        return found

    def expired(self, now: int) -> list[LeaseQuestion]:
        """Do without what the store has taken back, and take again what requests under way have reserved."""
        self.account.take_lent(now)
        lending, self._lending = self._lending, set()
        found = []
        for place in PLACES:
            start, stop, left, _, leased, others = self.account.terms(*place, now)
            # Of what has no limit nothing was ever leased.
            if left < 0 and (leased or place in lending):
                scale = scale_of(place)
                budget = Budget(self.scope, self.name, *place, start, stop)
                found.append(LeaseQuestion(budget, floor=_up(others + leased, scale), force=_up(-left, scale)))
        return found

    def rejoins(self, now: int) -> list[LeaseQuestion]:
        """Return what a store that lost its data gets: all that was leased."""
        found = []
        for place in PLACES:
            start, stop, _, _, leased, _ = self.account.terms(*place, now)
            if leased:
                budget = Budget(self.scope, self.name, *place, start, stop)
                scale = scale_of(place)
                lent = self.account.lends(place, start, scale)[0] // scale
                found.append(LeaseQuestion(budget, rejoin=_up(leased, scale), lent=lent))
        return found


def scale_of(place: Place) -> int:
    """Return how much of an account is one of what is leased."""
    return MICRO if place[1] == "dollars" else 1


def _up(amount: int, scale: int) -> int:
    return -(-amount // scale)
