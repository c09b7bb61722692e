from __future__ import annotations

from typing import Any

import pytest

from headgate_drivers.requests import own_reply
from headgate_engine.context.request import Reply, RequestContext, make_context
from headgate_engine.plan.step import CONTINUE_VERDICT, RESPOND_VERDICT, run_step
from headgate_engine.steps.held import HeldCredential, HeldStep
from headgate_engine.steps.location import CredentialLocation

BEARER = CredentialLocation("header", "authorization", "Bearer ")


def test_a_fresh_credential_is_put_in_and_nobody_is_asked() -> None:
    asked: list[Any] = []
    held = HeldCredential()
    held.keep(b"token", 100, 200)
    ctx = make_context(headers=[("authorization", "Bearer client")])
    assert run_step(HeldStep(asked.append, held, BEARER), ctx) == CONTINUE_VERDICT
    assert ctx.request.get_list("authorization") == ["Bearer token"]
    assert not asked
    assert (held.fresh, held.usable) == (True, True)


def test_one_that_is_old_or_missing_is_asked_for() -> None:
    held = HeldCredential()
    assert (held.fresh, held.usable, held.value) == (False, False, None)

    def refuse(_: RequestContext) -> Reply:
        return Reply(500, b"none")

    ctx = make_context()
    assert run_step(HeldStep(refuse, held, BEARER), ctx) == RESPOND_VERDICT
    assert own_reply(ctx) is not None
    assert own_reply(ctx).body == b"none"
    held.keep(b"token", 0, 100)
    assert (held.fresh, held.usable) == (False, True)
    assert run_step(HeldStep(refuse, held, BEARER), make_context()) == RESPOND_VERDICT


def test_without_a_location_nothing_is_put_in() -> None:
    held = HeldCredential()
    held.keep(b"token", 100, 200)
    ctx = make_context()
    assert run_step(HeldStep(lambda _: None, held), ctx) == CONTINUE_VERDICT
    assert ctx.request.items() == []


def test_no_step_puts_a_credential_where_an_expression_reads() -> None:
    from headgate.expr.compile import compile_expression

    place = CredentialLocation("expression", program=compile_expression("request.path", "route"))
    with pytest.raises(ValueError):
        HeldStep(lambda _: None, HeldCredential(), place)
