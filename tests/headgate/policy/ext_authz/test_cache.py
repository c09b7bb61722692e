"""Decisions are kept by their keys, for their time, within bounds; one request renews each."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.expr.compile import compile_expression
from headgate.policy.ext_authz.cache import DecisionCache
from headgate.policy.ext_authz.decision import AuthzDecision
from headgate_engine.context.request import Reply, RequestContext, make_context


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def made(ttl: str, *keys: str, most: int = 10) -> tuple[DecisionCache, Clock]:
    clock = Clock()
    programs = [compile_expression(text, "route", {}) for text in keys or ("request.path",)]
    return DecisionCache(programs, compile_expression(ttl, "route", {}), most, clock, lambda: clock.time), clock


def kept(cache: DecisionCache, ctx: RequestContext, decision: AuthzDecision) -> Any:
    key = cache.key(ctx)
    assert key is not None
    cache.put(key, ctx, decision)
    return key


@pytest.mark.parametrize("ttl", ["duration('100s')", "timestamp(1100)", "1100", "1100u", "1100.0"])
def test_times(ttl: str) -> None:
    cache, clock = made(ttl)
    decision = AuthzDecision()
    key = kept(cache, make_context(), decision)
    clock.time += 90
    assert cache.get(key) is decision
    clock.time += 10
    assert cache.get(key) is None
    assert len(cache) == 0


@pytest.mark.parametrize("ttl", ["duration('0s')", "duration('-1s')", "1000", "'text'", "true", "jwt.sub"])
def test_no_time_keeps_nothing(ttl: str) -> None:
    cache, _ = made(ttl)
    key = kept(cache, make_context(), AuthzDecision())
    assert cache.get(key) is None


def test_a_later_decision_without_time_ends_an_earlier_one() -> None:
    cache, _ = made("duration(extauthz.ttl)")
    ctx = make_context()
    ctx.dynamic = {"extauthz": {"ttl": "100s"}}
    key = kept(cache, ctx, AuthzDecision())
    assert cache.get(key) is not None
    ctx.dynamic = {"extauthz": {"ttl": "0s"}}
    cache.put(key, ctx, AuthzDecision())
    assert cache.get(key) is None


def test_one_request_renews_while_others_use_it() -> None:
    cache, clock = made("duration('100s')")
    decision = AuthzDecision()
    key = kept(cache, make_context(), decision)
    clock.time += 94.9
    assert cache.get(key) is decision
    clock.time += 0.2
    assert cache.get(key) is None, "the last five seconds: this one asks"
    assert cache.get(key) is decision
    assert cache.held(key) is decision, "for the one that could not renew it"
    newer = AuthzDecision()
    cache.put(key, make_context(), newer)
    clock.time += 50
    assert cache.get(key) is newer
    clock.time += 50
    assert cache.held(key) is None


def test_keys() -> None:
    cache, _ = made("1100", "request.path", "jwt.n")
    ctx = make_context(target="/a")
    assert cache.key(ctx) is None, "jwt has no value"
    ctx.jwt = {"n": 1}
    key = cache.key(ctx)
    assert key is not None
    ctx.jwt = {"n": True}
    assert cache.key(ctx) != key, "1 and true are not the same"
    ctx.jwt = {"n": [1]}
    assert cache.key(ctx) is None, "no scalar"
    ctx.jwt = {"n": "x" * 5000}
    assert cache.key(ctx) is None, "too long"
    assert made("1100")[0].key(make_context()) is not None
    assert DecisionCache([], compile_expression("1", "route", {}), 1).key(make_context()) is None


def test_bounds() -> None:
    cache, _ = made("duration('100s')", most=3)
    keys = [kept(cache, make_context(target=f"/{number}"), AuthzDecision()) for number in range(3)]
    assert cache.get(keys[0]) is not None
    kept(cache, make_context(target="/3"), AuthzDecision())
    assert (len(cache), cache.get(keys[1])) == (3, None), "the least recently used one went"
    assert cache.get(keys[0]) is not None
    long = AuthzDecision(reply=Reply(403, b"x" * 5000))
    assert cache.get(kept(cache, make_context(target="/long"), long)) is None
