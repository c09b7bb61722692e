"""A store of leases in memory, for tests of what asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from headgate.telemetry.spend.budgets import BudgetFailure, LeaseAnswer, LeaseExpired, LeaseQuestion, Standing


class Memory:
    """A store in memory, as the real ones are."""

    place = "memory"

    def __init__(self) -> None:
        self.taken: dict[Any, int] = {}
        self.asked: list[LeaseQuestion] = []
        self.away = False
        # How many calls are answered before it is too slow; None: all. And whether it grants nothing, since it has lost
        # its memory and nobody was told yet.
        self.lasts: int | None = None
        self.blank = False
        # Set by the one question that is never answered.
        self.hangs: asyncio.Event | None = None
        # What the gateways have lent, by who asks; and those that were silent for too long.
        self.lent: dict[Any, int] = {}
        self.silent = False
        self.forgot = False
        self.closed = False
        self.given_back = asyncio.Event()

    async def ask(self, questions: Sequence[LeaseQuestion]) -> list[LeaseAnswer]:
        if self.away:
            raise BudgetFailure("away")
        if self.hangs is not None:
            hangs, self.hangs = self.hangs, None
            hangs.set()
            await asyncio.Event().wait()
        if self.lasts is not None:
            if not self.lasts:
                raise BudgetFailure("slow")
            self.lasts -= 1
        if self.blank:
            return [LeaseAnswer(0, 0)] * len(questions)
        if self.silent:
            raise LeaseExpired("silent")
        # As PostgreSQL, which refuses a call otherwise.
        assert len({question.budget for question in questions}) == len(questions)
        return [self.answer_one(question) for question in questions]

    def answer_one(self, one: LeaseQuestion) -> LeaseAnswer:
        self.asked.append(one)
        taken = max(self.taken.get(one.budget, 0) - one.back, one.floor) + one.rejoin
        left = one.most - taken
        granted = one.total + min(one.extra, (left - one.total) // 4) if one.total <= left else max(left, 0) if one.least <= left else 0
        granted = max(granted, one.force)
        self.taken[one.budget] = taken + granted
        self.lent[one.budget] = one.lent
        if one.back:
            self.given_back.set()
        return LeaseAnswer(granted, max(left - granted, 0))

    def expire(self) -> None:
        """Take back what the gateway has lent."""
        for budget, lent in self.lent.items():
            self.taken[budget] -= lent
        self.lent.clear()
        self.silent = True

    async def heard(self) -> Standing:
        if self.away:
            raise BudgetFailure("away")
        forgot, silent, self.forgot, self.silent = self.forgot, self.silent, False, False
        return Standing.LOST if forgot else Standing.EXPIRED if silent else Standing.KNOWN

    async def aclose(self) -> None:
        self.closed = True
