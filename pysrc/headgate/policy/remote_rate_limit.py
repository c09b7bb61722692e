"""Compiles `remoteRateLimit` to a step: a service that speaks Envoy's protocol counts.

Source: https://www.envoyproxy.io/docs/envoy/latest/api-v3/service/ratelimit/v3/rls.proto.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterable, Sequence
from typing import Final

from headgate.ir.policy.remote_rate_limit import LimitDescriptor, RemoteRateLimit
from headgate.policy.environment import Environment
from headgate.policy.header_values import APPEND
from headgate.policy.remote import GrpcPolicyService
from headgate.telemetry.metrics import series_key
from headgate_engine.context.request import Reply, RequestContext, log_extra
from headgate_engine.envoy.limits import LimitAnswer, LimitQuestion, domain_field, read_limit_answer
from headgate_engine.expr.program import Program
from headgate_engine.expr.values import EvaluationError, Uint
from headgate_engine.link.consult import ConsultStep
from headgate_engine.link.grpc_call import GrpcFailure
from headgate_engine.plan.step import Step
from headgate_engine.shared.counters import Counter
from headgate_engine.steps.asking import AskingStep
from headgate_engine.steps.conditional import ConditionalStep

logger = logging.getLogger("headgate.remote_rate_limit")

NAME: Final = "remoteRateLimit"
METHOD: Final = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
REASON: Final = "RateLimit"
PLAIN: Final = (b"content-type", b"text/plain")
FAILED: Final = Reply(500, b"rate limit failed", (PLAIN,), REASON)
MAX_ANSWER: Final = 256 * 1024
OK, OVER_LIMIT = 1, 2
DECISIONS: Final = "gw_limit_decisions_total"
# The service let a request pass, limited it, or gave no answer: the failure mode decided.
PASSED, LIMITED, UNANSWERED = "passed", "limited", "failed"
LIMIT, REMAINING, RESET = b"x-ratelimit-limit", b"x-ratelimit-remaining", b"x-ratelimit-reset"
MOST_HITS: Final = 2**63 - 1


class LimitedUse:
    """What is counted by one descriptor."""

    def __init__(self, descriptor: LimitDescriptor, env: Environment, phase: str, later: str) -> None:
        limit = None if descriptor.limit is None else env.program(descriptor.limit, phase)
        self.question = LimitQuestion([(key, env.program(text, phase)) for key, text in descriptor.entries], limit)
        self.cost = None if descriptor.cost is None else env.program(descriptor.cost, later)


class RemoteLimiter:
    """The limits of one policy: on requests, or on tokens."""

    def __init__(
        self, policy: RemoteRateLimit, service: GrpcPolicyService, uses: Sequence[LimitedUse], env: Environment
    ) -> None:
        self._domain = domain_field(policy.domain)
        self._service = service
        self._timeout_s = policy.timeout_ms / 1000
        self._failed = None if policy.fail_open else FAILED
        self._uses = tuple(uses)
        self._costs = tuple(use.cost for use in uses)
        self._decisions = {
            decision: Counter(env.segment, series_key(DECISIONS, {"limit": "remote", "decision": decision}))
            for decision in (PASSED, LIMITED, UNANSWERED)
        }

    def __call__(self, ctx: RequestContext) -> Awaitable[Reply | None] | None:
        """Count a request. None: nothing is counted."""
        question = self.compose(ctx)
        return None if question is None else self._asked(ctx, question)

    def _question(
        self, ctx: RequestContext, uses: Iterable[LimitedUse], costs: Iterable[Program | int | None]
    ) -> bytes | None:
        found = []
        for use, cost in zip(uses, costs, strict=True):
            hits = cost if cost is None or isinstance(cost, int) else _hits(cost, ctx)
            if hits is None and cost is not None:
                continue
            descriptor = use.question.encode(ctx, hits)
            if descriptor is not None:
                found.append(descriptor)
        return self._domain + b"".join(found) if found else None

    def compose(self, ctx: RequestContext) -> bytes | None:
        """Return the message about a request; None: nothing is counted."""
        return self._question(ctx, self._uses, self._costs)

    async def _asked(self, ctx: RequestContext, question: bytes) -> Reply | None:
        try:
            found = await self._service.unary(ctx, METHOD, question, timeout_s=self._timeout_s, limit=MAX_ANSWER)
        except GrpcFailure as error:
            return self._unanswered(ctx, error)
        return self.conclude(ctx, found, None, None)

    def _unanswered(self, ctx: RequestContext, error: Exception) -> Reply | None:
        ctx.add_log_field("ratelimit.error", str(error))
        logger.debug("rate limit service failed", extra=log_extra(ctx, service=self._service.name, error=str(error)))
        self._decisions[UNANSWERED].add()
        return self._failed

    def conclude(
        self, ctx: RequestContext, message: bytes | None, failure: GrpcFailure | None, _note: None
    ) -> Reply | None:
        """Apply the service's answer to the request. Return the refusal, None if the request continues."""
        if message is None:
            return self._unanswered(ctx, failure or GrpcFailure(2, "no answer"))
        try:
            answer = read_limit_answer(message)
            if answer.code not in (OK, OVER_LIMIT):
                raise GrpcFailure(2, "the service has no decision")
        except (GrpcFailure, ValueError) as error:
            return self._unanswered(ctx, error)
        self._decisions[LIMITED if answer.code == OVER_LIMIT else PASSED].add()
        return _applied(ctx, answer)


class TokenLimiter(RemoteLimiter):
    """Limits on the tokens of models: looked at before a model is asked, counted behind its answer."""

    def __init__(
        self, policy: RemoteRateLimit, service: GrpcPolicyService, uses: Sequence[LimitedUse], env: Environment
    ) -> None:
        super().__init__(policy, service, uses, env)
        self._spawn = env.spawn

    async def check(self, ctx: RequestContext, estimate: int) -> Reply | None:
        """Ask whether tokens are left; `estimate` of them are counted. Called by headgate_engine.steps.remote_limit."""
        question = self._question(ctx, self._uses, [estimate] * len(self._uses))
        return None if question is None else await self._asked(ctx, question)

    def settle(self, ctx: RequestContext, used: int, estimate: int) -> None:
        """Count what a request has used beyond what was counted. Nobody waits for it."""
        rest = used - estimate
        counted = [(use, rest if use.cost is None else _hits(use.cost, ctx)) for use in self._uses]
        wanted = [(use, cost) for use, cost in counted if cost is not None and cost > 0]
        question = self._question(ctx, [use for use, _ in wanted], [cost for _, cost in wanted])
        if question is not None:
            self._spawn("remote rate limit", self._tell(ctx, question))

    async def _tell(self, ctx: RequestContext, question: bytes) -> None:
        try:
            await self._service.unary(ctx, METHOD, question, timeout_s=self._timeout_s, limit=MAX_ANSWER)
        except GrpcFailure as error:
            fields = log_extra(ctx, service=self._service.name, error=str(error))
            logger.warning("tokens were not counted", extra=fields)


class LimitPolicy:
    """Counts a request, and notes what is to be asked about its tokens."""

    def __init__(self, policy: RemoteRateLimit, env: Environment) -> None:
        service = GrpcPolicyService(policy.service, env, "RateLimit")
        requests = [LimitedUse(one, env, "route", "route") for one in policy.descriptors if not one.tokens]
        tokens = [LimitedUse(one, env, "backend", "log") for one in policy.descriptors if one.tokens]
        self._requests = RemoteLimiter(policy, service, requests, env) if requests else None
        self._tokens = TokenLimiter(policy, service, tokens, env) if tokens else None

        self._service = service
        self._timeout_s = policy.timeout_ms / 1000

    def step(self) -> Step:
        """Return the step that asks."""
        question = None
        if self._requests is not None:
            question = self._service.question(METHOD, self, timeout_s=self._timeout_s, limit=MAX_ANSWER)
        return AskingStep(NAME, self) if question is None else ConsultStep(NAME, self, question)

    def _note_tokens(self, ctx: RequestContext) -> None:
        if self._tokens is not None:
            ctx.remote_limits = (*(ctx.remote_limits or ()), self._tokens)

    def compose(self, ctx: RequestContext) -> tuple[bytes, None] | None:
        """Return the message about a request; None: nothing is counted."""
        self._note_tokens(ctx)
        question = None if self._requests is None else self._requests.compose(ctx)
        return None if question is None else (question, None)

    def conclude(
        self, ctx: RequestContext, message: bytes | None, failure: GrpcFailure | None, note: None
    ) -> Reply | None:
        """Apply the service's answer to the request. Return the refusal, None if the request continues."""
        assert self._requests is not None
        return self._requests.conclude(ctx, message, failure, note)

    def __call__(self, ctx: RequestContext) -> Awaitable[Reply | None] | None:
        self._note_tokens(ctx)
        return None if self._requests is None else self._requests(ctx)


def _hits(cost: Program, ctx: RequestContext) -> int | None:
    """Return what an expression says a request counts; None if it has no such value."""
    try:
        value = cost.evaluate(ctx)
    except EvaluationError:
        return None
    number = value.value if isinstance(value, Uint) else value
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MOST_HITS:
        return None
    return number


def _applied(ctx: RequestContext, answer: LimitAnswer) -> Reply | None:
    """Apply an answer to the request. Return the refusal, None if the request continues."""
    told = answer.told
    names = {name for name, _ in told}
    numbers = [(name, value) for name, value in _tightest(answer) if name not in names]
    if answer.code == OVER_LIMIT:
        fields = [(name, b"%d" % value) for name, value in numbers] + told
        if answer.body and b"content-type" not in names:
            fields.append(PLAIN)
        return Reply(429, answer.body, tuple(fields), REASON)
    for name, value in numbers:
        ctx.add_response_header(name.decode(), str(value))
    for name, field in told:
        ctx.edit_response_header(APPEND, name, field)
    answer.edit_request(ctx.request)
    return None


def _tightest(answer: LimitAnswer) -> list[tuple[bytes, int]]:
    """Return the rate-limit headers of the descriptor with the least left."""
    if not answer.known:
        return []
    return [(LIMIT, answer.limit), (REMAINING, answer.left), (RESET, answer.reset_s)]


def compile_remote_rate_limit(entries: tuple[RemoteRateLimit, ...], env: Environment) -> Step:
    """Return the step that asks the service of the first entry whose condition holds."""
    steps: list[tuple[Program | None, Step]] = []
    for entry in entries:
        condition = None if entry.condition is None else env.program(entry.condition, "route")
        steps.append((condition, LimitPolicy(entry, env).step()))
    if len(steps) == 1 and steps[0][0] is None:
        return steps[0][1]
    return ConditionalStep(NAME, steps)


