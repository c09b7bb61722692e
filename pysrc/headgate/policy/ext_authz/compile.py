"""Compiles `extAuthz` to a step."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Protocol

from headgate.ir.policy.ext_authz import ExtAuthz
from headgate.policy.environment import Environment
from headgate.policy.ext_authz.cache import DecisionCache, Key
from headgate.policy.ext_authz.decision import AuthzDecision, refusal
from headgate.policy.ext_authz.failure import ServiceFailure
from headgate.policy.ext_authz.http import HttpAuthorizer
from headgate.policy.ext_authz.seen import SeenRequest
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.expr.program import Program
from headgate_engine.plan.step import Step
from headgate_engine.steps.asking import AskingStep
from headgate_engine.steps.conditional import ConditionalStep

logger = logging.getLogger("headgate.ext_authz")

NAME = "extAuthz"
TOO_LARGE = refusal(413)


class Authorizer(Protocol):
    """A protocol of authorization services."""

    async def decide(self, ctx: RequestContext) -> AuthzDecision:
        """Return the decision of the service about a request. Raises ServiceFailure."""


class AuthorizationCheck:
    """Asks one service, or takes what it has decided before."""

    def __init__(self, policy: ExtAuthz, env: Environment, phase: str) -> None:
        self._authorizer = _authorizer(policy, env, phase)
        self._name = policy.service.name
        self._seen = SeenRequest(policy.sent, policy.body)
        self._failed = None if policy.failure_status is None else refusal(policy.failure_status)
        cache = policy.cache
        self._cache = None
        if cache is not None and cache.keys:
            keys = [env.program(text, phase) for text in cache.keys]
            self._cache = DecisionCache(keys, env.program(cache.ttl, phase), cache.max_entries)

    def __call__(self, ctx: RequestContext) -> Reply | Awaitable[Reply | None] | None:
        if self._seen.too_long(ctx):
            return TOO_LARGE
        if self._cache is None:
            return self._ask(ctx, None)
        key = self._cache.key(ctx)
        known = None if key is None else self._cache.get(key)
        return self._ask(ctx, key) if known is None else known.apply(ctx)

    async def _ask(self, ctx: RequestContext, key: Key | None) -> Reply | None:
        try:
            decision = await self._authorizer.decide(ctx)
        except ServiceFailure as error:
            ctx.add_log_field("extauthz.error", str(error))
            logger.debug("authorization service failed", extra={"service": self._name, "error": str(error)})
            return self._failed
        reply = decision.apply(ctx)
        if key is not None and self._cache is not None:
            self._cache.put(key, ctx, decision)
        return reply


def _authorizer(policy: ExtAuthz, env: Environment, phase: str) -> Authorizer:
    if policy.http is not None:
        return HttpAuthorizer(policy, env, phase)
    from headgate.policy.ext_authz.grpc import GrpcAuthorizer  # protobuf: 4 MB

    return GrpcAuthorizer(policy, env, phase)


def compile_ext_authz(entries: tuple[ExtAuthz, ...], env: Environment, phase: str) -> Step:
    """Return the step that asks the service of the first entry whose condition holds."""
    steps: list[tuple[Program | None, Step]] = []
    for entry in entries:
        condition = None if entry.condition is None else env.program(entry.condition, phase)
        body_bytes = -1 if entry.body is None else entry.body.max_bytes
        steps.append((condition, AskingStep(NAME, AuthorizationCheck(entry, env, phase), body_bytes)))
    if len(steps) == 1 and steps[0][0] is None:
        return steps[0][1]
    return ConditionalStep(NAME, steps)
