"""What gateways lease of one limit: all of it can be spent, and no more, whatever becomes of them."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.headgate.server.lease_store_rig import Memory

from headgate.policy.leases import LeaseWant
from headgate.server.leased_account import LeasedAccount
from headgate.telemetry.spend.budgets import LeaseAnswer, LeaseQuestion
from headgate_drivers.account import reserve_at, settle_at
from headgate_engine.limit.account import LeaseState, UsageLimits
from headgate_engine.shared.segment import Segment


class Gateway:
    """A gateway of the property below: its leases in a segment of its own, as the keeper asks for them."""

    def __init__(self, store: Several, number: int) -> None:
        self.store, self.number = store, number
        self.leased = LeasedAccount(Segment.create(state_bytes=1 << 20), "key", "k")
        state = LeaseState(Segment.create(state_bytes=1 << 20))
        state.configure(True, False)
        self.state = state
        self.limits = UsageLimits(self.leased.account, [("day", "tokens", MOST, -1)], state)
        self.under_way: list[int] = []
        # How many of them, from the first on, were lent when the store took that back.
        self.taken_back = 0
        self.spent = self.beyond = 0

    def ask(self, questions: list[LeaseQuestion]) -> None:
        for question in questions:
            self.leased.asks(question)
            self.leased.took(question, self.store.answer(self.number, question))

    def request(self, tokens: int) -> None:
        for _ in range(2):
            if reserve_at(self.limits, tokens, 0, NOW) is None:
                self.under_way.append(tokens)
                return
            want = LeaseWant("key", "k", "day", "tokens", tokens, tokens, MOST)
            question = self.leased.wants(("day", "tokens"), [want], NOW)
            self.ask([] if question is None else [question])

    def settle(self, share: float) -> None:
        if self.under_way:
            tokens = self.under_way.pop()
            used = int(tokens * share)
            if len(self.under_way) < self.taken_back:
                self.taken_back -= 1
                self.beyond += used
            settle_at(self.limits, (tokens, 0), (used, 0), NOW)
            self.spent += used


class Several(Memory):
    """A store of several gateways."""

    def __init__(self) -> None:
        super().__init__()
        self.lends: dict[int, int] = {}
        self.budget: Any = None

    def answer(self, number: int, question: LeaseQuestion) -> LeaseAnswer:
        self.budget = question.budget
        self.lends[number] = question.lent
        return self.answer_one(question)

    def take_back(self, number: int) -> None:
        if self.budget is not None:
            self.taken[self.budget] -= self.lends.pop(number, 0)


MOST = 1000
NOW = int(time.time())
DAY = 86400


@pytest.mark.parametrize("used", [0, 40])
def test_what_was_lent_in_a_window_that_ended_is_lent_no_more(used: int) -> None:
    one = Gateway(Several(), 0)
    one.request(40)
    one.ask(one.leased.tended(NOW))
    assert one.store.lends[0] == 40
    if used:
        settle_at(one.limits, (40, 0), (used, 0), NOW + DAY)
    one.ask(one.leased.tended(NOW + DAY))
    assert (one.store.lends[0], one.leased.lends) == (0, False)
    # It is told once.
    assert one.leased.tended(NOW + DAY) == []


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_no_more_is_spent_than_the_limit_whoever_is_killed_or_cut_off(data: st.DataObject) -> None:
    """Beyond the limit is only what requests use that were under way when their gateway was cut off."""
    store = Several()
    running = {number: Gateway(store, number) for number in range(3)}
    cut: set[int] = set()
    spent = beyond = 0
    for _ in range(data.draw(st.integers(5, 60))):
        number = data.draw(st.sampled_from(sorted(running)))
        one = running[number]
        step = data.draw(st.sampled_from(("request", "request", "settle", "settle", "tend", "kill", "cut", "back")))
        if step == "request" and number not in cut:
            one.request(data.draw(st.integers(1, 300)))
        elif step == "request" and reserve_at(one.limits, tokens := data.draw(st.integers(1, 300)), 0, NOW) is None:
            one.under_way.append(tokens)
        elif step == "settle":
            one.settle(data.draw(st.sampled_from((0.0, 0.5, 1.0))))
            if number not in cut:
                one.ask(one.leased.tells(NOW))
        elif step == "tend" and number not in cut:
            one.ask(one.leased.tended(NOW))
        elif step == "kill":
            spent += one.spent
            beyond += one.beyond
            store.take_back(number)
            cut.discard(number)
            running[number] = Gateway(store, number)
        elif step == "cut" and number not in cut:
            # It notices before the store does; what was under way then goes on.
            one.state.set_fence(time.monotonic_ns())
            store.take_back(number)
            cut.add(number)
            one.taken_back = len(one.under_way)
        elif step == "back" and number in cut:
            cut.discard(number)
            one.state.set_fence(0)
            one.ask(one.leased.expired(NOW))
    for number, one in running.items():
        if number in cut:
            one.state.set_fence(0)
            one.ask(one.leased.expired(NOW))
        while one.under_way:
            one.settle(1.0)
        one.ask(one.leased.tended(NOW, end=True))
    # What is left is spent to the end.
    for one in running.values():
        for _ in range(MOST // 10):
            one.request(10)
            one.settle(1.0)
        beyond, spent = beyond + one.beyond, spent + one.spent
    assert spent <= MOST + beyond
