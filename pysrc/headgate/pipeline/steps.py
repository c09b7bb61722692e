"""Policies to engine steps, in the order of the pipeline table (phases.py).

The module of a policy is imported with the first configuration that uses it.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.ir.backend import HostBackend, MissingBackend, ServiceBackend, UiBackend
from headgate.ir.policies import BackendPolicies, GatewayPolicies, HeaderModifier, LocalRateLimit, RoutePolicies
from headgate.ir.policy.backend_auth import JwtSign, Passthrough
from headgate.ir.policy.cloud_auth import AwsAuth, GcpAuth
from headgate.ir.policy.key_auth import KeyAuth
from headgate.ir.route import Route
from headgate.pipeline.replies import (
    CSRF_FAILED,
    FORBIDDEN,
    NO_BODY,
    NO_PREFIX,
    RATE_LIMITED,
    REPLIES,
    reply_of,
)
from headgate.policy.environment import Environment
from headgate_engine.plan.plans import ResponseHold
from headgate_engine.plan.step import Step
from headgate_engine.steps.buffer import BufferStep
from headgate_engine.steps.conditional import ConditionalStep
from headgate_engine.steps.headers import RequestHeaderStep, ResponseHeaderStep
from headgate_engine.steps.local_rate_limit import LocalRateLimitStep, TokenLimitStep


def stands_alone(route: Route) -> bool:
    """Whether the plan of a route holds nothing that lives only as long as the configuration it was compiled in: tasks,
    clients, credentials that are fetched, sessions. Such a plan may go on in the next configuration.
    """
    policies = route.policies
    if policies.oidc is not None or policies.mcp_auth is not None or policies.mirror is not None:
        return False
    for entry in route.backends:
        auth = entry.policies.auth
        if auth is not None and not isinstance(auth.main, KeyAuth | Passthrough | JwtSign | None):
            return False
        if not isinstance(entry.backend, HostBackend | ServiceBackend | MissingBackend | UiBackend):
            return False
    return True


def gateway_request_steps(policies: GatewayPolicies, env: Environment, phase: str = "gateway") -> list[Step]:
    """Return the steps before route selection; those of a route begin with the same ones."""
    found: list[Step] = _identity_steps(policies, env, phase)
    _add(found, _transformation(policies, env, phase))
    return found


def _identity_steps(policies: GatewayPolicies, env: Environment, phase: str) -> list[Step]:
    found: list[Step] = []
    if policies.cors is not None:
        from headgate.policy import cors

        found.append(cors.compile_cors(policies.cors))
    if policies.oidc is not None:
        from headgate.policy import oidc

        found.append(oidc.compile_oidc(policies.oidc, env))
    if policies.jwt is not None:
        from headgate.policy import identity

        found.append(identity.compile_jwt(policies.jwt, env))
    if isinstance(policies, RoutePolicies) and policies.mcp_auth is not None:
        from headgate.policy import mcp_authentication

        found += mcp_authentication.compile_mcp_authentication(policies.mcp_auth, env)
    if policies.basic is not None:
        from headgate.policy import identity

        found.append(identity.compile_basic(policies.basic, env))
    if policies.api_key is not None:
        from headgate.policy import identity

        found.append(identity.compile_api_key(policies.api_key, env))
    if policies.authorization is not None:
        refused = reply_of(FORBIDDEN)
        from headgate.policy import authorization

        found.append(authorization.compile_authorization(policies.authorization, env, refused, phase))
    return found


def _transformation(policies: GatewayPolicies, env: Environment, phase: str) -> Step | None:
    if policies.transformations is None:
        return None
    from headgate.policy import transformation

    return transformation.compile_request(policies.transformations, env, phase)


def _add(steps: list[Step], step: Step | None) -> None:
    if step is not None:
        steps.append(step)


def route_request_steps(policies: RoutePolicies, env: Environment) -> tuple[Step, ...]:
    """Return the steps between route selection and backend choice."""
    found = _identity_steps(policies, env, "route")
    if policies.local_rate_limits:
        found += _rate_limits(policies.local_rate_limits, env)
    if policies.buffer is not None:
        from headgate.policy import buffer

        _add(found, buffer.compile_request(policies.buffer, env, reply_of(REPLIES["body_too_large"])))
    _add(found, _transformation(policies, env, "route"))
    if policies.csrf is not None:
        from headgate.policy import csrf

        found.append(csrf.compile_csrf(policies.csrf, reply_of(CSRF_FAILED)))
    if policies.request_headers is not None:
        found.append(_request_headers(policies.request_headers))
    if policies.rewrite is not None:
        from headgate.policy import rewrite

        found.append(rewrite.compile_rewrite(policies.rewrite, reply_of(NO_PREFIX)))
    if policies.redirect is not None:
        from headgate.policy import rewrite

        found.append(rewrite.compile_redirect(policies.redirect, reply_of(NO_PREFIX)))
    if policies.delay is not None:
        from headgate.policy import delay

        found.append(delay.compile_delay(policies.delay, env))
    if policies.direct_response:
        failed = reply_of(NO_BODY)
        from headgate.policy import direct_response

        found.append(direct_response.compile_direct_response(policies.direct_response, env, failed))
    if policies.mirror is not None:
        from headgate.policy import mirror

        found.append(mirror.compile_mirror(policies.mirror, env))
    return tuple(found)


def _rate_limits(limits: tuple[LocalRateLimit, ...], env: Environment) -> list[Step]:
    """Return one step for the entries that all count, and one for those of which the first that holds does."""
    refused = reply_of(RATE_LIMITED)

    def step(entries: list[LocalRateLimit], kind: type[LocalRateLimitStep]) -> LocalRateLimitStep:
        buckets = tuple(
            (one.key.encode(), one.max_tokens, one.tokens_per_fill, one.fill_interval_ns) for one in entries
        )
        return kind(env.segment, buckets, refused)

    found: list[Step] = []
    always = [limit for limit in limits if not limit.conditional]
    chosen = [limit for limit in limits if limit.conditional]
    for kind in (LocalRateLimitStep, TokenLimitStep):
        entries = [one for one in always if one.tokens == (kind is TokenLimitStep)]
        if entries:
            found.append(step(entries, kind))
    if chosen:
        variants = []
        for one in chosen:
            condition = None if one.condition is None else env.program(one.condition, "route")
            variants.append((condition, step([one], TokenLimitStep if one.tokens else LocalRateLimitStep)))
        found.append(ConditionalStep("localRateLimit", variants))
    return found


def route_response_steps(policies: RoutePolicies) -> tuple[Step, ...]:
    """Return what happens to every response of the route, the gateway's own included."""
    if policies.response_headers is None:
        return ()
    return (_response_headers(policies.response_headers),)


def response_transforms(policies: GatewayPolicies | BackendPolicies, env: Environment) -> tuple[Step, ...]:
    """Return the response halves of transformations, which run behind the header modifiers."""
    if policies.transformations is None:
        return ()
    from headgate.policy import transformation

    step = transformation.compile_response(policies.transformations, env)
    return () if step is None else (step,)


def response_hold(policies: GatewayPolicies | BackendPolicies, env: Environment) -> ResponseHold | None:
    """Return how the response is held back, for a buffer or for a transformation that reads its body."""
    if isinstance(policies, RoutePolicies) and policies.buffer is not None:
        from headgate.policy import buffer

        found = buffer.compile_response(policies.buffer, env)
        if found is not None:
            return found
    if not policies.transformations:
        return None
    from headgate.policy import transformation

    if transformation.reads_response(policies.transformations, env):
        return ResponseHold(env.max_body)
    if transformation.reads_usage(policies.transformations, env):
        return ResponseHold(env.max_body, usage_only=True)
    return None


def backend_request_steps(policies: BackendPolicies, env: Environment) -> tuple[Step, ...]:
    """Return the steps of one attempt: who may pass, credentials, changes."""
    found: list[Step] = []
    if policies.authorization is not None:
        refused = reply_of(FORBIDDEN)
        from headgate.policy import authorization

        found.append(authorization.compile_authorization(policies.authorization, env, refused, "backend"))
    if policies.auth is not None:
        if isinstance(policies.auth.main, AwsAuth):
            # What is signed holds a hash of the body.
            found.append(BufferStep(env.max_body, False, reply_of(REPLIES["body_too_large"])))
        from headgate.policy import backend_auth

        found += backend_auth.compile_backend_auth(policies.auth, env)
    if policies.transformations is not None:
        from headgate.policy import transformation

        _add(found, transformation.compile_request(policies.transformations, env, "backend"))
    if policies.request_headers is not None:
        found.append(_request_headers(policies.request_headers))
    if policies.redirect is not None:
        from headgate.policy import rewrite

        found.append(rewrite.compile_redirect(policies.redirect, reply_of(NO_PREFIX)))
    return tuple(found)


def backend_final_steps(policies: BackendPolicies, env: Environment) -> tuple[Step, ...]:
    """Return what runs on the request as it leaves: signatures."""
    if policies.auth is None:
        return ()
    from headgate.policy import backend_auth

    return tuple(backend_auth.compile_final(policies.auth, env))


def at_host(policies: BackendPolicies, host: str) -> BackendPolicies:
    """Return the policies of requests to a host: their credentials may depend on it. ValueError."""
    auth = policies.auth
    if auth is None or not isinstance(auth.main, AwsAuth | GcpAuth):
        return policies
    from headgate.policy.cloud.steps import placed

    return replace(policies, auth=replace(auth, main=placed(auth.main, host)))


def backend_response_steps(policies: BackendPolicies) -> tuple[Step, ...]:
    """Return the edits a backend makes to its responses."""
    if policies.response_headers is None:
        return ()
    return (_response_headers(policies.response_headers),)


def _request_headers(edit: HeaderModifier) -> RequestHeaderStep:
    return RequestHeaderStep(edit.add, edit.set, edit.remove)


def _response_headers(edit: HeaderModifier) -> ResponseHeaderStep:
    return ResponseHeaderStep(edit.add, edit.set, edit.remove)
