"""Policies to engine steps, in the order of the pipeline table (phases.py)."""

from __future__ import annotations

from headgate.ir.policies import BackendPolicies, DirectResponse, HeaderModifier, RoutePolicies
from headgate.pipeline.replies import RATE_LIMITED, REPLIES, reply_of
from headgate.policy import buffer
from headgate.policy.environment import Environment
from headgate_engine.context.request import Reply
from headgate_engine.plan.step import Step
from headgate_engine.steps.credential import CredentialStep
from headgate_engine.steps.headers import RequestHeaderStep, ResponseHeaderStep
from headgate_engine.steps.local_rate_limit import LocalRateLimitStep
from headgate_engine.steps.reply import ReplyStep


def route_request_steps(policies: RoutePolicies, env: Environment) -> tuple[Step, ...]:
    """Return the steps between route selection and backend choice."""
    found: list[Step] = []
    segment = env.segment
    if policies.local_rate_limits:
        limits = tuple(
            (limit.key.encode(), limit.max_tokens, limit.tokens_per_fill, limit.fill_interval_ns)
            for limit in policies.local_rate_limits
        )
        found.append(LocalRateLimitStep(segment, limits, reply_of(RATE_LIMITED)))
    if policies.buffer is not None:
        whole = buffer.compile_request(policies.buffer, env, reply_of(REPLIES["body_too_large"]))
        if whole is not None:
            found.append(whole)
    if policies.request_headers is not None:
        found.append(_request_headers(policies.request_headers))
    if policies.direct_response is not None:
        found.append(ReplyStep("directResponse", _direct_reply(policies.direct_response)))
    return tuple(found)


def route_response_steps(policies: RoutePolicies) -> tuple[Step, ...]:
    """Return what happens to every response of the route, the gateway's own included."""
    if policies.response_headers is None:
        return ()
    return (_response_headers(policies.response_headers),)


def backend_request_steps(policies: BackendPolicies) -> tuple[Step, ...]:
    """Return the steps of one attempt: credentials first, header edits after."""
    found: list[Step] = []
    if policies.auth is not None:
        auth = policies.auth
        value = auth.prefix.encode() + auth.key.secret.reveal_bytes()
        found.append(CredentialStep(auth.header, value))
    if policies.request_headers is not None:
        found.append(_request_headers(policies.request_headers))
    return tuple(found)


def backend_response_steps(policies: BackendPolicies) -> tuple[Step, ...]:
    """Return the edits a backend makes to its responses."""
    if policies.response_headers is None:
        return ()
    return (_response_headers(policies.response_headers),)


def _request_headers(edit: HeaderModifier) -> RequestHeaderStep:
    return RequestHeaderStep(edit.add, edit.set, edit.remove)


def _response_headers(edit: HeaderModifier) -> ResponseHeaderStep:
    return ResponseHeaderStep(edit.add, edit.set, edit.remove)


def _direct_reply(answer: DirectResponse) -> Reply:
    headers = tuple((name.lower().encode(), value.encode()) for name, value in answer.headers)
    return Reply(answer.status, answer.body, headers, "DirectResponse")
