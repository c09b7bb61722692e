"""Compiles `extAuthz` to a step."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, Protocol

from headgate.ir.policy.ext_authz import ExtAuthz
from headgate.policy.environment import Environment
from headgate.policy.ext_authz.cache import DecisionCache, Key
from headgate.policy.ext_authz.decision import AuthzDecision, refusal
from headgate.policy.ext_authz.failure import ServiceFailure
from headgate.policy.ext_authz.http import HttpAuthorizer
from headgate.policy.ext_authz.seen import SeenRequest
from headgate_engine.context.request import Reply, RequestContext, log_extra
from headgate_engine.expr.program import Program
from headgate_engine.link.consult import ConsultStep
from headgate_engine.link.grpc_call import GrpcFailure
from headgate_engine.plan.step import Step
from headgate_engine.steps.asking import AskingStep
from headgate_engine.steps.conditional import ConditionalStep

if TYPE_CHECKING:
    from headgate.policy.ext_authz.grpc import GrpcAuthorizer

logger = logging.getLogger("headgate.ext_authz")

NAME = "extAuthz"
TOO_LARGE = refusal(413)


class Authorizer(Protocol):
    """A protocol of authorization services."""

    async def decide(self, ctx: RequestContext) -> AuthzDecision:
        """Return the decision of the service about a request. Raises ServiceFailure."""


class AuthorizationCheck:
    """Asks one service, or takes what it has decided before."""

    def __init__(self, policy: ExtAuthz, authorizer: Authorizer, env: Environment, phase: str) -> None:
        self._authorizer = authorizer
        self._name = policy.service.name
        self._seen = SeenRequest(policy.sent, policy.body)
        self._bounded = policy.body is not None and not policy.body.partial
        self._failed = None if policy.failure_status is None else refusal(policy.failure_status)
        cache = policy.cache
        self._cache = None
        if cache is not None and cache.keys:
            keys = [env.program(text, phase) for text in cache.keys]
            self._cache = DecisionCache(keys, env.program(cache.ttl, phase), cache.max_entries)

    def __call__(self, ctx: RequestContext) -> Reply | Awaitable[Reply | None] | None:
        """Say what is known of a request, or ask."""
        found = self.known(ctx)
        return self._ask(ctx, found.key) if isinstance(found, Unknown) else found

    def known(self, ctx: RequestContext) -> Reply | Unknown | None:
        """Return the decision that is known without a call: a refusal, or None if the request continues."""
        if self._bounded and self._seen.too_long(ctx):
            return TOO_LARGE
        cache = self._cache
        key = None if cache is None else cache.key(ctx)
        if cache is None or key is None:
            return UNKNOWN
        known: AuthzDecision | None = cache.get(key)
        return Unknown(key) if known is None else known.apply(ctx)

    async def _ask(self, ctx: RequestContext, key: Key | None) -> Reply | None:
        try:
            decision = await self._authorizer.decide(ctx)
        except ServiceFailure as error:
            return self.undecided(ctx, key, error)
        return self.decided(ctx, key, decision)

    def undecided(self, ctx: RequestContext, key: Key | None, error: ServiceFailure) -> Reply | None:
        """The service has failed; a decision that was to be renewed holds until its end. Return the refusal."""
        ctx.add_log_field("extauthz.error", str(error))
        logger.debug("authorization service failed", extra=log_extra(ctx, service=self._name, error=str(error)))
        kept: AuthzDecision | None = None if key is None or self._cache is None else self._cache.held(key)
        return self._failed if kept is None else kept.apply(ctx)

    def decided(self, ctx: RequestContext, key: Key | None, decision: AuthzDecision) -> Reply | None:
        """Apply a decision, and cache it. Return the refusal, None if the request continues."""
        reply = decision.apply(ctx)
        if key is not None and self._cache is not None:
            self._cache.put(key, ctx, decision)
        return reply


class Unknown:
    """Nothing is known of a request. `key`: that of the decision; None: it has none."""

    __slots__ = ("key",)

    def __init__(self, key: Key | None) -> None:
        self.key = key


UNKNOWN: Final = Unknown(None)


class MessageCheck(AuthorizationCheck):
    """The same by a unary gRPC call that the engine makes."""

    def __init__(self, policy: ExtAuthz, authorizer: GrpcAuthorizer, env: Environment, phase: str) -> None:
        super().__init__(policy, authorizer, env, phase)
        self._grpc = authorizer

    def compose(self, ctx: RequestContext) -> tuple[bytes, Key | None] | Reply | None:
        """Return the message that asks about a request and the key of the decision, or what is known without it."""
        found = self.known(ctx)
        return (self._grpc.question(ctx), found.key) if isinstance(found, Unknown) else found

    def conclude(
        self, ctx: RequestContext, message: bytes | None, failure: GrpcFailure | None, key: Key | None
    ) -> Reply | None:
        """Apply the service's decision. Return the refusal, None if the request continues."""
        try:
            decision = self._grpc.decision(message, failure)
        except ServiceFailure as error:
            return self.undecided(ctx, key, error)
        return self.decided(ctx, key, decision)


def compile_ext_authz(entries: tuple[ExtAuthz, ...], env: Environment, phase: str) -> Step:
    """Return the step that asks the service of the first entry whose condition holds."""
    steps: list[tuple[Program | None, Step]] = []
    for entry in entries:
        condition = None if entry.condition is None else env.program(entry.condition, phase)
        steps.append((condition, _step(entry, env, phase)))
    if len(steps) == 1 and steps[0][0] is None:
        return steps[0][1]
    return ConditionalStep(NAME, steps)


def _step(policy: ExtAuthz, env: Environment, phase: str) -> Step:
    body_bytes = -1 if policy.body is None else policy.body.max_bytes
    if policy.http is not None:
        return AskingStep(NAME, AuthorizationCheck(policy, HttpAuthorizer(policy, env, phase), env, phase), body_bytes)
    from headgate.policy.ext_authz.grpc import GrpcAuthorizer  # protobuf: 4 MB

    authorizer = GrpcAuthorizer(policy, env, phase)
    check = MessageCheck(policy, authorizer, env, phase)
    question = authorizer.asked(check)
    return AskingStep(NAME, check, body_bytes) if question is None else ConsultStep(NAME, check, question, body_bytes)
