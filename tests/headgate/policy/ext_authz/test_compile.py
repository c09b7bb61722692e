"""Decisions about requests: those of the service, those that are kept, and what holds where it fails."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.expr.compile import compile_expression
from headgate.ir.policy.ext_authz import AuthzCache, ExtAuthz
from headgate.policy.ext_authz.cache import DecisionCache
from headgate.policy.ext_authz.compile import AuthorizationCheck
from headgate.policy.ext_authz.decision import AuthzDecision, refusal
from headgate.policy.ext_authz.failure import ServiceFailure
from headgate_engine.context.request import Reply, RequestContext, make_context


class Service:
    """`decision`: what it decides; None: it fails."""

    def __init__(self) -> None:
        self.decision: AuthzDecision | None = AuthzDecision()
        self.calls = 0

    async def decide(self, ctx: RequestContext) -> AuthzDecision:
        self.calls += 1
        if self.decision is None:
            raise ServiceFailure("away")
        return self.decision


class Rig:
    """A check with a clock of its own. Decisions are kept for 100 s, and renewed in the last five."""

    def __init__(self, keys: tuple[str, ...] = ("request.path",), failure_status: int | None = 403) -> None:
        self.time = 1000.0
        env: Any = SimpleNamespace(program=lambda text, phase: compile_expression(text, phase, {}))
        policy = ExtAuthz(
            service=cast("Any", SimpleNamespace(name="s")), failure_status=failure_status,
            cache=AuthzCache(keys=keys, ttl="duration('100s')"),
        )  # fmt: skip
        self.service = Service()
        self.check = AuthorizationCheck(policy, self.service, env, "route")
        if keys:
            programs = [env.program(text, "route") for text in keys]
            self.check._cache = DecisionCache(programs, env.program("duration('100s')", "route"), 10, lambda: self.time)

    def ask(self, path: str = "/") -> int | None:
        """The status of the refusal, None if the request goes on."""
        found = self.check(make_context(target=path))
        reply = found if found is None or isinstance(found, Reply) else asyncio.run(cast("Any", found))
        return None if reply is None else int(reply.status)


@pytest.mark.parametrize("decided", [None, 401])
@pytest.mark.parametrize("failure_status", [None, 403, 503])
def test_a_decision_that_cannot_be_renewed_holds_until_its_end(decided: int | None, failure_status: int | None) -> None:
    rig = Rig(failure_status=failure_status)
    rig.service.decision = AuthzDecision(reply=None if decided is None else refusal(decided))
    assert rig.ask() == decided
    rig.service.decision = None
    rig.time += 96
    assert (rig.ask(), rig.service.calls) == (decided, 2), "this one has asked, in vain"
    assert (rig.ask(), rig.service.calls) == (decided, 2)
    rig.time += 4
    assert (rig.ask(), rig.service.calls) == (failure_status, 3), "it has ended"
    assert rig.ask("/other") == failure_status


@pytest.mark.parametrize("keys", [(), ("jwt.sub",), ("'a'", "request.headers['none']"), ("[1]",)])
def test_without_a_key_each_request_is_asked_about(keys: tuple[str, ...]) -> None:
    rig = Rig(keys)
    assert [rig.ask(), rig.ask()] == [None, None]
    assert rig.service.calls == 2
    rig.service.decision = None
    assert rig.ask() == 403
