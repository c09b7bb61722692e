"""Which provider of a model is taken, and what virtual models come to."""

from __future__ import annotations

import pytest

from headgate.expr.compile import compile_expression
from headgate_engine.context.request import make_context
from headgate_engine.link.backend import HOST
from headgate_engine.llm.target import LlmEdits, LlmGroup, LlmTarget, ModelEntry, VirtualEntry
from headgate_engine.plan.plans import BackendPlan


def target(name: str) -> LlmTarget:
    return LlmTarget(BackendPlan(name, "llm", HOST), name, {})


def entry(*groups: tuple[LlmTarget, ...]) -> ModelEntry:
    return ModelEntry("m", [LlmGroup(group) for group in groups])


def test_groups_are_taken_in_order_and_nothing_twice() -> None:
    one, two, three = target("one"), target("two"), target("three")
    made = entry((one,), (two, three))
    assert made.size == 3
    assert made.choose() is one
    assert {made.choose([one]).provider for _ in range(50)} == {b"two", b"three"}
    assert made.choose([one, two]) is three
    assert made.choose([one, two, three]) is one


def test_equal_values_stay_at_one_target_and_only_those_of_a_lost_one_move() -> None:
    members = [target(name) for name in "abcd"]
    made = ModelEntry("m", [LlmGroup(members)], compile_expression('request.headers["x-user"]', "llm"))

    def homes(tried: list[LlmTarget]) -> list[LlmTarget]:
        users = [make_context("GET", "/", "h", [("x-user", str(user))]) for user in range(200)]
        return [made.choose(tried, user) for user in users]

    before = homes([])
    assert before == homes([])
    assert {before.count(one) > 20 for one in members} == {True}
    for old, new in zip(before, homes([members[0]]), strict=True):
        assert (new is old) is (old is not members[0])
    # Without a value the load is spread.
    assert len({id(made.choose([], make_context("GET", "/", "h", []))) for _ in range(100)}) == 4


def test_a_model_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(ValueError, match="leads nowhere"):
        entry(())
    with pytest.raises(ValueError, match="leads nowhere"):
        VirtualEntry("v", [entry((target("a"),))], weights=[0])


def test_weights() -> None:
    a, b = entry((target("a"),)), entry((target("b"),))
    virtual = VirtualEntry("v", [a, b], weights=[0, 3])
    assert virtual.sums == (0, 3)
    assert all(virtual.choose() is b for _ in range(50))
    assert {id(VirtualEntry("v", [a, b], weights=[1, 1]).choose()) for _ in range(100)} == {id(a), id(b)}


def test_a_condition_that_is_missing_always_holds() -> None:
    only = entry((target("a"),))
    assert VirtualEntry("v", [only], conditions=[None]).choose() is only


def test_aliases_are_tried_exact_first_then_the_longest_pattern() -> None:
    edits = LlmEdits(aliases={"a*": "1", "*": "2", "abc": "3", "ab*": "4"})
    assert [model for _, model in edits.aliases] == ["3", "4", "1", "2"]
    assert LlmEdits(overrides={"x": {"y": 1}}).overrides == {"x": b'{"y": 1}'}
