"""Rules against the sentence of their policy, over every combination of outcomes."""

from __future__ import annotations

import itertools

import pytest

from headgate.expr.compile import compile_expression
from headgate_engine.context.request import Reply, make_context
from headgate_engine.plan.step import run_step
from headgate_engine.steps.authorization import AuthorizationStep

OUTCOMES = {"true": True, "false": False, "jwt.nope": None, "1": None}
SETS = [()] + [pair for size in (1, 2) for pair in itertools.product(OUTCOMES, repeat=size)]


def allowed(deny: tuple[str, ...], require: tuple[str, ...], allow: tuple[str, ...]) -> bool:
    if any(OUTCOMES[text] is not False for text in deny):
        return False
    if any(OUTCOMES[text] is not True for text in require):
        return False
    return not allow or any(OUTCOMES[text] is True for text in allow)


@pytest.mark.parametrize("deny", SETS[:9])
def test_every_combination(deny: tuple[str, ...]) -> None:
    programs = {text: compile_expression(text) for text in OUTCOMES}
    refused = Reply(403)
    for require, allow in itertools.product(SETS, SETS):
        step = AuthorizationStep(*([programs[text] for text in rules] for rules in (deny, require, allow)), refused)
        ctx = make_context()
        assert (run_step(step, ctx) == 0) == allowed(deny, require, allow), (deny, require, allow)
