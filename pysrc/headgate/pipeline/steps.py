"""Policies to engine steps: one function for each row of the pipeline table (phases.py), which has their order.

A function takes the value of its policy, the compilation context, and the phase of its expressions. The module
of a policy is imported with the first configuration that uses it.
"""

from __future__ import annotations

from collections.abc import Iterable

from headgate.document.lazy_dataclass import replace
from headgate.ir.backend import (
    AgentRuntimeBackend,
    Backend,
    GroupBackend,
    HostBackend,
    InternalBackend,
    MissingBackend,
    ServiceBackend,
    UiBackend,
)
from headgate.ir.model import LlmModel
from headgate.ir.policies import (
    BackendPolicies,
    DirectResponse,
    GatewayPolicies,
    HeaderModifier,
    LocalRateLimit,
    RoutePolicies,
    Timeout,
)
from headgate.ir.policy.authorization import Authorization
from headgate.ir.policy.backend_auth import BackendAuth, JwtSign, Passthrough
from headgate.ir.policy.buffer import Buffer
from headgate.ir.policy.cloud_auth import AwsAuth, GcpAuth
from headgate.ir.policy.cors import Cors
from headgate.ir.policy.csrf import Csrf
from headgate.ir.policy.delay import Delay
from headgate.ir.policy.ext_authz import ExtAuthz
from headgate.ir.policy.ext_proc import ExtProc
from headgate.ir.policy.identity import ApiKeyAuth, BasicAuth, JwtAuth
from headgate.ir.policy.inference_routing import InferenceRouting
from headgate.ir.policy.key_auth import KeyAuth
from headgate.ir.policy.mcp_authentication import McpAuthentication
from headgate.ir.policy.mirror import Mirror
from headgate.ir.policy.oidc import Oidc
from headgate.ir.policy.remote_rate_limit import RemoteRateLimit
from headgate.ir.policy.retry import RetryPolicy
from headgate.ir.policy.rewrite import PathRewrite, Redirect, Rewrite
from headgate.ir.policy.transformation import Transformation
from headgate.ir.policy.usage_headers import UsageHeaders
from headgate.ir.route import Route
from headgate.pipeline.replies import (
    CSRF_FAILED,
    FORBIDDEN,
    NO_BODY,
    NO_PREFIX,
    RATE_LIMIT_FAILED,
    RATE_LIMITED,
    REPLIES,
    TOKENS_LIMITED,
    reply_of,
)
from headgate.policy.environment import Environment
from headgate.policy.retry import compile_retry
from headgate_engine.plan.plans import ResponseHold, RoutePlan
from headgate_engine.plan.step import Step
from headgate_engine.steps.buffer import BufferStep, ReadBodyStep
from headgate_engine.steps.conditional import ConditionalStep
from headgate_engine.steps.headers import RequestHeaderStep, ResponseHeaderStep
from headgate_engine.steps.local_rate_limit import LocalRateLimitStep, PromptTokenStep, TokenLimitStep

Found = Iterable[Step]
NS_PER_MS = 1_000_000
# Most that is read of a body of A2A at once: 4 ms of scanning at worst, or of decoding.
INSPECTED_BYTES = 512 * 1024


STANDING_ALONE = (
    HostBackend, ServiceBackend, AgentRuntimeBackend, MissingBackend, UiBackend, GroupBackend, InternalBackend,
)  # fmt: skip


def stands_alone(route: Route) -> bool:
    """Whether the plan of a route uses no object that lives only as long as its configuration: tasks, clients, fetched
    credentials, sessions. The next configuration can keep such a plan.
    """
    policies = route.policies
    if policies.oidc is not None or policies.mcp_auth is not None or policies.mirrors:
        return False
    if any(one is not None for one in (policies.ext_authz, policies.ext_proc, policies.remote_rate_limit)):
        return False
    for entry in route.backends:
        auth = entry.policies.auth
        if entry.policies.ext_authz is not None or entry.policies.inference is not None:
            return False
        if auth is not None and not isinstance(auth.main, KeyAuth | Passthrough | JwtSign | None):
            return False
        if not isinstance(entry.backend, STANDING_ALONE):
            return False
    return True


# -- one function for each policy: the value of its field, to steps ----------------------------------------------------
def cors(value: Cors, env: Environment, phase: str) -> Found:
    from headgate.policy.cors import compile_cors

    return (compile_cors(value),)


def oidc(value: Oidc, env: Environment, phase: str) -> Found:
    from headgate.policy.oidc import compile_oidc

    return (compile_oidc(value, env),)


def jwt(value: JwtAuth, env: Environment, phase: str) -> Found:
    from headgate.policy.identity import compile_jwt

    return (compile_jwt(value, env),)


def mcp_authentication(value: McpAuthentication, env: Environment, phase: str) -> Found:
    from headgate.policy.mcp_authentication import compile_mcp_authentication

    return compile_mcp_authentication(value, env)


def basic(value: BasicAuth, env: Environment, phase: str) -> Found:
    from headgate.policy.identity import compile_basic

    return (compile_basic(value, env),)


def api_key(value: ApiKeyAuth, env: Environment, phase: str) -> Found:
    from headgate.policy.identity import compile_api_key

    return (compile_api_key(value, env),)


def ext_authz(value: tuple[ExtAuthz, ...], env: Environment, phase: str) -> Found:
    from headgate.policy.ext_authz.compile import compile_ext_authz

    return (compile_ext_authz(value, env, phase),)


def authorization(value: Authorization, env: Environment, phase: str) -> Found:
    from headgate.policy.authorization import compile_authorization

    return (compile_authorization(value, env, reply_of(FORBIDDEN), phase),)


def inference_routing(value: InferenceRouting, env: Environment, phase: str) -> Found:
    from headgate.policy.inference_routing import compile_inference_routing

    return (compile_inference_routing(value, env),)


def ext_proc(value: tuple[ExtProc, ...], env: Environment, phase: str) -> Found:
    from headgate.policy.ext_proc import compile_ext_proc

    return (compile_ext_proc(value, env, phase),)


def remote_rate_limit(value: tuple[RemoteRateLimit, ...], env: Environment, phase: str) -> Found:
    from headgate.policy.remote_rate_limit import compile_remote_rate_limit

    return (compile_remote_rate_limit(value, env),)


def buffer(value: Buffer, env: Environment, phase: str) -> Found:
    from headgate.policy.buffer import compile_request

    return _one(compile_request(value, env, reply_of(REPLIES["body_too_large"])))


def transformations(value: tuple[Transformation, ...], env: Environment, phase: str) -> Found:
    from headgate.policy.transformation import compile_request

    return _one(compile_request(value, env, phase))


def csrf(value: Csrf, env: Environment, phase: str) -> Found:
    from headgate.policy.csrf import compile_csrf

    return (compile_csrf(value, reply_of(CSRF_FAILED)),)


def request_headers(value: HeaderModifier, env: Environment, phase: str) -> Found:
    return (RequestHeaderStep(value.add, value.set, value.remove),)


def rewrite(value: Rewrite, env: Environment, phase: str) -> Found:
    from headgate.policy.rewrite import compile_rewrite

    return (compile_rewrite(value, reply_of(NO_PREFIX)),)


def fixed_path(backend: Backend, env: Environment) -> tuple[Step, ...]:
    """Return what leads requests to a fixed path of the admin API; their query stays."""
    if not isinstance(backend, UiBackend) or backend.path is None:
        return ()
    return tuple(rewrite(Rewrite(path=PathRewrite(full=backend.path)), env, "backend"))


def redirect(value: Redirect, env: Environment, phase: str) -> Found:
    from headgate.policy.rewrite import compile_redirect

    return (compile_redirect(value, reply_of(NO_PREFIX)),)


def delay(value: Delay, env: Environment, phase: str) -> Found:
    from headgate.policy.delay import compile_delay

    return (compile_delay(value, env),)


def direct_response(value: tuple[DirectResponse, ...], env: Environment, phase: str) -> Found:
    from headgate.policy.direct_response import compile_direct_response

    return (compile_direct_response(value, env, reply_of(NO_BODY)),)


def mirrors(value: tuple[Mirror, ...], env: Environment, phase: str) -> Found:
    from headgate.policy.mirror import compile_mirror

    return tuple(compile_mirror(one, env) for one in value)


def backend_auth(value: BackendAuth, env: Environment, phase: str) -> Found:
    from headgate.policy.backend_auth import compile_backend_auth

    found: list[Step] = []
    if isinstance(value.main, AwsAuth):
        # What is signed holds a hash of the body.
        found.append(BufferStep(env.max_body, False, reply_of(REPLIES["body_too_large"])))
    return found + compile_backend_auth(value, env)


def a2a(value: bool, env: Environment, phase: str) -> Found:
    from headgate_engine.steps.a2a import A2aStep

    return (A2aStep(min(env.max_body, INSPECTED_BYTES)),)


def signature(value: BackendAuth, env: Environment, phase: str) -> Found:
    from headgate.policy.backend_auth import compile_final

    return compile_final(value, env)


def response_headers(value: HeaderModifier, env: Environment, phase: str) -> Found:
    return (ResponseHeaderStep(value.add, value.set, value.remove),)


def usage_headers(value: UsageHeaders, env: Environment, phase: str) -> Found:
    from headgate.policy.usage_headers import compile_usage_headers

    return (compile_usage_headers(value),)


def response_transformations(value: tuple[Transformation, ...], env: Environment, phase: str) -> Found:
    from headgate.policy.transformation import compile_response

    return _one(compile_response(value, env))


def _one(step: Step | None) -> Found:
    return () if step is None else (step,)


# -- what a provider of models adds around the policies of its backend -------------------------------------------------
def model_guards(model: LlmModel, env: Environment, phase: str) -> Found:
    from headgate.backend.llm.guards.step import guard_steps

    return guard_steps(model.edits.guard, model.edits.enrichment, env)


def prompt_tokens(model: LlmModel, env: Environment, phase: str) -> Found:
    if not model.tokenize:
        return ()
    from headgate.backend.llm.long_bodies import counting_step

    return (counting_step(), PromptTokenStep(TOKENS_LIMITED))


def key_budget(model: LlmModel, env: Environment, phase: str) -> Found:
    table = env.key_table(wanted=False)
    if table is None:
        return ()
    from headgate.backend.llm.long_bodies import measuring_step
    from headgate.policy.virtual_keys import budget_step

    return (measuring_step(), budget_step(table))


def remote_tokens(model: LlmModel, env: Environment, phase: str) -> Found:
    from headgate_engine.steps.remote_limit import RemoteTokensStep

    return (RemoteTokensStep(),)


def long_translation(model: LlmModel, env: Environment, phase: str) -> Found:
    from headgate.backend.llm.long_bodies import translation_step

    return (translation_step(),)


def client_key(model: LlmModel, env: Environment, phase: str) -> Found:
    from headgate.backend.llm.credentials import before_auth

    return before_auth(model.policies.auth)


def provider_key(model: LlmModel, env: Environment, phase: str) -> Found:
    from headgate.backend.llm.credentials import after_auth

    return after_auth(model.provider)


# -- bodies that expressions read -------------------------------------------------------------------------------------
def body_reader(policies: object, env: Environment) -> Step:
    """Return the step that reads the request body: up to the route's own limit, else that of the gateway."""
    own = policies.buffer if isinstance(policies, RoutePolicies) else None
    limit = None if own is None or own.request is None else own.request.max_bytes
    return ReadBodyStep(env.max_body if limit is None else limit)


def later_reads_body(policies: object, env: Environment) -> bool:
    """Return whether an expression that is evaluated behind the steps of a phase reads the request body."""
    assert isinstance(policies, GatewayPolicies | BackendPolicies)
    env.reads_body = False
    if policies.transformations:
        from headgate.policy import transformation

        transformation.reads_response(policies.transformations, env)
    if isinstance(policies, RoutePolicies) and policies.retry is not None:
        compile_retry(policies.retry, env)
    if isinstance(policies, BackendPolicies):
        if policies.health is not None and policies.health.unhealthy is not None:
            env.program(policies.health.unhealthy, "answer")
        if policies.affinity is not None:
            env.program(policies.affinity, "backend")
    return env.reads_body


# -- settings of a route's plan ----------------------------------------------------------------------------------------
def set_timeouts(plan: RoutePlan, value: Timeout, env: Environment) -> None:
    plan.request_timeout_ns = (value.request_timeout_ms or 0) * NS_PER_MS
    plan.backend_timeout_ns = (value.backend_request_timeout_ms or 0) * NS_PER_MS


def set_retry(plan: RoutePlan, value: RetryPolicy, env: Environment) -> None:
    plan.retry = compile_retry(value, env)


def set_authority(plan: RoutePlan, value: Rewrite, env: Environment) -> None:
    plan.keep_authority = value.authority is not None and not value.authority.auto


def local_rate_limit(limits: tuple[LocalRateLimit, ...], env: Environment, phase: str) -> Found:
    """Return one step for the unconditional entries, which all apply, and one for the conditional entries, of which the
    first match applies."""
    refused, limiter = reply_of(RATE_LIMITED), env.shared()

    def step(entries: list[LocalRateLimit], kind: type[LocalRateLimitStep]) -> LocalRateLimitStep:
        refusal = TOKENS_LIMITED if kind is TokenLimitStep else refused
        if limiter is not None:
            from headgate.policy.shared.compile import shared_step

            return shared_step(entries, limiter, env.segment, refusal, reply_of(RATE_LIMIT_FAILED))
        buckets = tuple(
            (one.key.encode(), one.max_tokens, one.tokens_per_fill, one.fill_interval_ns) for one in entries
        )
        return kind(env.segment, buckets, refusal)

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
            condition = None if one.condition is None else env.program(one.condition, phase)
            variants.append((condition, step([one], TokenLimitStep if one.tokens else LocalRateLimitStep)))
        found.append(ConditionalStep("localRateLimit", variants))
    return found


def response_hold(policies: GatewayPolicies | BackendPolicies, env: Environment) -> ResponseHold | None:
    """Return the settings for holding back the response, for a buffer or for a transformation that reads its body."""
    prefix = False
    if policies.transformations:
        from headgate.policy import transformation

        prefix = transformation.reads_prefix(policies.transformations, env)
    if isinstance(policies, RoutePolicies) and policies.buffer is not None:
        from headgate.policy import buffer

        found = buffer.compile_response(policies.buffer, env, prefix)
        if found is not None:
            return found
    told = isinstance(policies, RoutePolicies) and policies.usage_headers is not None
    if not policies.transformations:
        return ResponseHold(env.max_body, usage_only=True) if told else None
    if transformation.reads_response(policies.transformations, env):
        return ResponseHold(env.max_body, prefix=prefix)
    if told or transformation.reads_usage(policies.transformations, env):
        return ResponseHold(env.max_body, usage_only=True)
    return None


def at_host(policies: BackendPolicies, host: str) -> BackendPolicies:
    """Return the policies of requests to a host, on which credentials may depend. Raises ValueError."""
    auth = policies.auth
    if auth is None or not isinstance(auth.main, AwsAuth | GcpAuth):
        return policies
    from headgate.policy.cloud.steps import placed

    return replace(policies, auth=replace(auth, main=placed(auth.main, host)))
