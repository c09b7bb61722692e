"""Compiles `remoteRateLimit` to a step: a service that speaks Envoy's protocol counts.

Source: https://www.envoyproxy.io/docs/envoy/latest/api-v3/service/ratelimit/v3/rls.proto.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Final

from envoy.service.ratelimit.v3.rls_pb2 import RateLimitRequest, RateLimitResponse
from google.protobuf.message import DecodeError

from headgate.ir.policy.remote_rate_limit import LimitDescriptor, RemoteRateLimit
from headgate.policy.environment import Environment
from headgate.policy.header_values import APPEND, REPLACE_OR_ADD, usable_edit, value_edit
from headgate.policy.remote import GrpcPolicyService
from headgate.telemetry.metrics import series_key
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.expr.program import Program
from headgate_engine.expr.values import EvaluationError, Uint
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
# RateLimitDescriptor.RateLimitOverride: units of time (envoy.type.v3.RateLimitUnit).
UNITS: Final = {"second": 1, "minute": 2, "hour": 3, "day": 4, "month": 5, "year": 6}
MOST_HITS: Final = 2**63 - 1


class LimitedUse:
    """What is counted by one descriptor."""

    def __init__(self, descriptor: LimitDescriptor, env: Environment, phase: str, later: str) -> None:
        self._entries = [(key, env.program(text, phase)) for key, text in descriptor.entries]
        self._limit = None if descriptor.limit is None else env.program(descriptor.limit, phase)
        self.cost = None if descriptor.cost is None else env.program(descriptor.cost, later)

    def write(self, ctx: RequestContext, found: Any) -> bool:
        """Write the descriptor. Return False if an expression has no value that can be sent."""
        try:
            for key, program in self._entries:
                found.entries.add(key=key, value=_shown(program.evaluate(ctx)))
            if self._limit is not None:
                _override(self._limit.evaluate(ctx), found.limit)
        except (EvaluationError, ValueError):
            return False
        return True


class RemoteLimiter:
    """The limits of one policy: on requests, or on tokens."""

    def __init__(
        self, policy: RemoteRateLimit, service: GrpcPolicyService, uses: Sequence[LimitedUse], env: Environment
    ) -> None:
        self._domain = policy.domain
        self._service = service
        self._timeout_s = policy.timeout_ms / 1000
        self._failed = None if policy.fail_open else FAILED
        self._uses = tuple(uses)
        self._decisions = {
            decision: Counter(env.segment, series_key(DECISIONS, {"limit": "remote", "decision": decision}))
            for decision in (PASSED, LIMITED, UNANSWERED)
        }

    def __call__(self, ctx: RequestContext) -> Awaitable[Reply | None] | None:
        """Count a request. None: nothing is counted."""
        question = self._question(ctx, self._uses, [use.cost for use in self._uses])
        return None if question is None else self._asked(ctx, question)

    def _question(
        self, ctx: RequestContext, uses: Iterable[LimitedUse], costs: Iterable[Program | int | None]
    ) -> bytes | None:
        question = RateLimitRequest(domain=self._domain)
        for use, cost in zip(uses, costs, strict=True):
            found = question.descriptors.add()
            fits = use.write(ctx, found)
            if fits and cost is not None:
                hits = cost if isinstance(cost, int) else _hits(cost, ctx)
                fits = hits is not None
                if hits is not None:
                    found.hits_addend.value = hits
            if not fits:
                del question.descriptors[-1]
        return bytes(question.SerializeToString()) if question.descriptors else None

    async def _asked(self, ctx: RequestContext, question: bytes) -> Reply | None:
        try:
            answer = RateLimitResponse.FromString(
                await self._service.unary(ctx, METHOD, question, timeout_s=self._timeout_s, limit=MAX_ANSWER)
            )
            if answer.overall_code not in (OK, OVER_LIMIT):
                raise GrpcFailure(2, "the service does not know")
        except (GrpcFailure, DecodeError, ValueError) as error:  # ValueError: text that is not UTF-8
            ctx.add_log_field("ratelimit.error", str(error))
            logger.debug("rate limit service failed", extra={"service": self._service.name, "error": str(error)})
            self._decisions[UNANSWERED].add()
            return self._failed
        self._decisions[LIMITED if answer.overall_code == OVER_LIMIT else PASSED].add()
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
            logger.warning("tokens were not counted", extra={"service": self._service.name, "error": str(error)})


class LimitPolicy:
    """Counts a request, and notes what is to be asked about its tokens."""

    def __init__(self, policy: RemoteRateLimit, env: Environment) -> None:
        service = GrpcPolicyService(policy.service, env, "RateLimit")
        requests = [LimitedUse(one, env, "route", "route") for one in policy.descriptors if not one.tokens]
        tokens = [LimitedUse(one, env, "backend", "log") for one in policy.descriptors if one.tokens]
        self._requests = RemoteLimiter(policy, service, requests, env) if requests else None
        self._tokens = TokenLimiter(policy, service, tokens, env) if tokens else None

    def __call__(self, ctx: RequestContext) -> Awaitable[Reply | None] | None:
        if self._tokens is not None:
            ctx.remote_limits = (*(ctx.remote_limits or ()), self._tokens)
        return None if self._requests is None else self._requests(ctx)


def _shown(value: object) -> str:
    """Return a value of a descriptor as text; ValueError for one that has none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Uint):
        return str(value.value)
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise ValueError("not a value of a descriptor")


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


def _override(value: object, limit: Any) -> None:
    """Write a limit in place of the service's own; ValueError for what is none."""
    unit, most = (value.get(key) for key in ("unit", "requestsPerUnit")) if isinstance(value, dict) else (None, None)
    number = most.value if isinstance(most, Uint) else most
    if not isinstance(unit, str) or unit.lower() not in UNITS:
        raise ValueError("not a unit")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**32:
        raise ValueError("not a number of requests")
    limit.requests_per_unit, limit.unit = number, UNITS[unit.lower()]


def _applied(ctx: RequestContext, answer: Any) -> Reply | None:
    """Apply an answer to the request. Return the refusal, None if the request goes on."""
    told = [edit for one in answer.response_headers_to_add if usable_edit(edit := value_edit(one, APPEND))]
    names = {edit.name for edit in told}
    numbers = [(name, value) for name, value in _tightest(answer.statuses) if name not in names]
    if answer.overall_code == OVER_LIMIT:
        fields = [(name.encode(), value.encode()) for name, value in numbers]
        fields += [edit.encoded for edit in told]
        body = bytes(answer.raw_body)
        if body and "content-type" not in names:
            fields.append(PLAIN)
        return Reply(429, body, tuple(fields), REASON)
    for name, value in numbers:
        ctx.add_response_header(name, value)
    for edit in told:
        ctx.edit_response_header(edit.action, *edit.encoded)
    for one in answer.request_headers_to_add:
        edit = value_edit(one, REPLACE_OR_ADD)
        if usable_edit(edit):
            ctx.request.set(edit.name, edit.value)
    return None


def _tightest(statuses: Iterable[Any]) -> list[tuple[str, str]]:
    """Return the rate-limit headers of the descriptor with the least left."""
    limited = [one for one in statuses if one.HasField("current_limit")]
    if not limited:
        return []
    one = min(limited, key=lambda status: int(status.limit_remaining))
    return [
        ("x-ratelimit-limit", str(one.current_limit.requests_per_unit)),
        ("x-ratelimit-remaining", str(one.limit_remaining)),
        ("x-ratelimit-reset", str(one.duration_until_reset.seconds)),
    ]


def compile_remote_rate_limit(entries: tuple[RemoteRateLimit, ...], env: Environment) -> Step:
    """Return the step that asks the service of the first entry whose condition holds."""
    steps: list[tuple[Program | None, Step]] = []
    for entry in entries:
        condition = None if entry.condition is None else env.program(entry.condition, "route")
        steps.append((condition, AskingStep(NAME, LimitPolicy(entry, env))))
    if len(steps) == 1 and steps[0][0] is None:
        return steps[0][1]
    return ConditionalStep(NAME, steps)


