"""The pipeline as data: what happens to a request, in which order, and why there.

Read top to bottom. `request_steps()` builds the steps of a plan by going down a phase, and `set_response()` those of
its responses, so the order of rows is the order in which policies run; it is written nowhere else. `docs/pipeline.md`
is made of the same tables (`python -m headgate.pipeline.phases > docs/pipeline.md`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from headgate.ir.model import LlmModel
from headgate.ir.policies import BackendPolicies, GatewayPolicies, RoutePolicies
from headgate.pipeline import steps
from headgate.policy.environment import Environment
from headgate_engine.plan.plans import BackendPlan, ListenerPlan, RoutePlan
from headgate_engine.plan.step import Step

# (value of the policy, what it is compiled with, name of the phase)
CompileSteps = Callable[[Any, Environment, str], steps.Found]
Configure = Callable[[RoutePlan, Any, Environment], None]


class PhaseEntry(NamedTuple):
    """One policy in its place. `field`: of the policies that are compiled; empty: `steps` gets these as a whole.

    One of three says what it does: `steps` compiles it to steps, `configure` sets something of the route's plan,
    `done_by` names the module that does it at this place. A row with none of them is not built: the loader refuses it.
    """

    policy: str
    field: str = ""
    steps: CompileSteps | None = None
    configure: Configure | None = None
    done_by: str = ""
    why: str = ""

    @property
    def built(self) -> bool:
        return bool(self.steps or self.configure or self.done_by)


class Phase(NamedTuple):
    """`per`: `request` runs once, `attempt` once for each try of a backend."""

    name: str
    per: str
    entries: tuple[PhaseEntry, ...]


class ResponseEntry(NamedTuple):
    """One policy of responses. `level`: whose (route, backend, gateway). `slot`: the field of the plan for its steps;
    the engine runs the slots in the order of RESPONSE, for its own answers as well.
    """

    policy: str
    level: str
    field: str = ""
    slot: str = ""
    steps: CompileSteps | None = None
    why: str = ""


def _backend_steps(model: LlmModel, env: Environment, phase: str) -> steps.Found:
    return request_steps("backend", model.policies, env)


GATEWAY: Final = Phase(
    "gateway",
    "request",
    (
        PhaseEntry("cors", "cors", steps.cors, why="a preflight carries no credentials"),
        PhaseEntry("oidc", "oidc", steps.oidc, why="identity comes before anything that may spend money"),
        PhaseEntry("jwtAuth", "jwt", steps.jwt),
        PhaseEntry("basicAuth", "basic", steps.basic),
        PhaseEntry("apiKey", "api_key", steps.api_key),
        PhaseEntry("extAuthz", "ext_authz", steps.ext_authz),
        PhaseEntry("authorization", "authorization", steps.authorization, why="needs identity"),
        PhaseEntry("extProc", "ext_proc", steps.ext_proc, why="a processor only sees requests that are allowed"),
        PhaseEntry(
            "transformations", "transformations", steps.transformations,
            why="route selection sees the changed request",
        ),
    ),
)  # fmt: skip
ROUTE: Final = Phase(
    "route",
    "request",
    (
        PhaseEntry(
            "timeout", "timeout", configure=steps.set_timeouts,
            why="counts from the start of the request, and covers everything below",
        ),
        PhaseEntry("cors", "cors", steps.cors),
        PhaseEntry("oidc", "oidc", steps.oidc),
        PhaseEntry("jwtAuth", "jwt", steps.jwt),
        PhaseEntry(
            "mcpAuthentication", "mcp_auth", steps.mcp_authentication,
            why="before authorization, whose rules read the claims",
        ),
        PhaseEntry("basicAuth", "basic", steps.basic),
        PhaseEntry("apiKey", "api_key", steps.api_key),
        PhaseEntry("extAuthz", "ext_authz", steps.ext_authz),
        PhaseEntry("authorization", "authorization", steps.authorization),
        PhaseEntry(
            "localRateLimit", "local_rate_limits", steps.local_rate_limit,
            why="only allowed requests consume the limit",
        ),
        PhaseEntry("remoteRateLimit", "remote_rate_limit", steps.remote_rate_limit),
        PhaseEntry("buffer", "buffer", steps.buffer, why="after the limits: refused bodies are not read"),
        PhaseEntry("extProc", "ext_proc", steps.ext_proc),
        PhaseEntry("transformations", "transformations", steps.transformations),
        PhaseEntry("csrf", "csrf", steps.csrf),
        PhaseEntry("requestHeaderModifier", "request_headers", steps.request_headers),
        PhaseEntry("urlRewrite", "rewrite", steps.rewrite, steps.set_authority),
        PhaseEntry("requestRedirect", "redirect", steps.redirect),
        PhaseEntry("delay", "delay", steps.delay),
        PhaseEntry(
            "directResponse", "direct_response", steps.direct_response,
            why="the last response policy: everything above applies to it too",
        ),
        PhaseEntry(
            "requestMirror", "mirrors", steps.mirrors,
            why="copies the request as the route's policies have changed it",
        ),
        PhaseEntry(
            "retry", "retry", configure=steps.set_retry,
            why="every attempt starts from the request in this state",
        ),
    ),
)  # fmt: skip
BACKEND: Final = Phase(
    "backend",
    "attempt",
    (
        PhaseEntry("inferenceRouting", "inference", steps.inference_routing, why="before the first attempt only"),
        PhaseEntry("authorization", "authorization", steps.authorization),
        PhaseEntry("extAuthz", "ext_authz", steps.ext_authz),
        PhaseEntry("backendAuth", "auth", steps.backend_auth, why="replaces what the client sent in the same place"),
        PhaseEntry("transformations", "transformations", steps.transformations),
        PhaseEntry("requestHeaderModifier", "request_headers", steps.request_headers),
        PhaseEntry("requestRedirect", "redirect", steps.redirect),
        PhaseEntry("a2a", "a2a", steps.a2a, why="reads the call to the agent, as changed by the policies above"),
        PhaseEntry(
            "llm", done_by="headgate_engine.llm.backend", why="the model chooses the provider, whose phase follows"
        ),
    ),
)  # fmt: skip
PROVIDER: Final = Phase(
    "provider",
    "attempt",
    (
        PhaseEntry(
            "guardrails and prompt enrichment", steps=steps.model_guards,
            why="they see the conversation in the client's format",
        ),
        PhaseEntry("tokenize", steps=steps.prompt_tokens, why="counts the prompt as the guards have changed it"),
        PhaseEntry(
            "limits of virtual keys", steps=steps.key_budget,
            why="reserves the most that the request can cost, before it is sent",
        ),
        PhaseEntry(
            "remoteRateLimit by tokens", steps=steps.remote_tokens, why="after the gateway's own limits"
        ),
        PhaseEntry("credential of the client", steps=steps.client_key, why="placed where `backendAuth` looks for it"),
        PhaseEntry("the backend phase, with the model's policies", steps=_backend_steps),
        PhaseEntry("key of the provider", steps=steps.provider_key, why="only if no policy set one"),
        PhaseEntry(
            "translation of a long body", steps=steps.long_translation,
            why="in a thread, of the body as all policies above have changed it",
        ),
    ),
)  # fmt: skip
DEPARTURE: Final = Phase(
    "departure",
    "attempt",
    (
        PhaseEntry("authority rewrite", done_by="headgate_engine.link.backend", why="named hosts get their own name"),
        PhaseEntry("signature", "auth", steps.signature, why="of `backendAuth.aws`: signs the request as it is sent"),
    ),
)
PHASES: Final = (GATEWAY, ROUTE, BACKEND, PROVIDER, DEPARTURE)
# Phases of expressions, some of which are evaluated behind the phase.
EXPRESSED: Final = frozenset(("gateway", "route", "backend"))

_HEADERS: Final = ("response_headers", "response_steps", steps.response_headers)
_CHANGES: Final = ("transformations", "response_transforms", steps.response_transformations)
RESPONSE: Final[tuple[ResponseEntry, ...]] = (
    ResponseEntry("buffer", "route", why="if the response is buffered, everything below runs when it is complete"),
    ResponseEntry(
        "usageHeaders", "route", "usage_headers", "response_steps", steps.usage_headers,
        why="the head of a complete response waits for its body; a stream has trailers instead",
    ),
    ResponseEntry("responseHeaderModifier", "route", *_HEADERS),
    ResponseEntry("responseHeaderModifier", "backend", *_HEADERS),
    ResponseEntry("transformations", "route", *_CHANGES, why="they see the edited headers"),
    ResponseEntry("transformations", "backend", *_CHANGES),
    ResponseEntry("transformations", "gateway", *_CHANGES),
    ResponseEntry("extProc", "route", why="a processor sees responses of backends, not those of the gateway"),
    ResponseEntry("extProc", "gateway"),
    ResponseEntry("collected headers (rate limit)", "route", why="overwrite headers of the same name"),
)


def request_steps(phase: str, policies: object, env: Environment) -> tuple[Step, ...]:
    """Return the steps of a phase for `policies`: GatewayPolicies, RoutePolicies or BackendPolicies; for the provider
    phase an LlmModel. Raises ValueError where a policy cannot be compiled.

    In front of a policy whose expressions read the request body stands a step that reads it. What is evaluated when the
    answer has come finds the body read at the end of the phase.
    """
    found: list[Step] = []
    if phase in EXPRESSED:
        env.phase = phase
    for field, steps_of in _STEPS[phase]:
        value = getattr(policies, field) if field else policies
        if value:
            env.reads_body = False
            made = tuple(steps_of(value, env, phase))
            if env.reads_body:
                found.append(steps.body_reader(policies, env))
            found += made
    if phase in EXPRESSED and steps.later_reads_body(policies, env):
        found.append(steps.body_reader(policies, env))
    env.reads_body = False
    return tuple(found)


def configure(plan: RoutePlan, policies: RoutePolicies, env: Environment) -> None:
    """Apply route policies that configure the plan as a whole."""
    for field, set_on in _CONFIGURED:
        if value := getattr(policies, field):
            set_on(plan, value, env)


def set_response(
    plan: ListenerPlan | RoutePlan | BackendPlan,
    level: str,
    policies: GatewayPolicies | BackendPolicies,
    env: Environment,
) -> None:
    """Set the response steps of a plan. `level`: gateway, route or backend."""
    plan.hold = steps.response_hold(policies, env)
    for entry in RESPONSE:
        if entry.steps is not None and entry.level == level and (value := getattr(policies, entry.field)):
            setattr(plan, entry.slot, (*getattr(plan, entry.slot), *entry.steps(value, env, "response")))


def _rows(phases: tuple[Phase, ...]) -> dict[str, tuple[tuple[str, CompileSteps], ...]]:
    """Return by phase, in order, the fields of policies with what compiles them to steps: most routes set few."""
    return {
        phase.name: tuple((entry.field, entry.steps) for entry in phase.entries if entry.steps is not None)
        for phase in phases
    }


_STEPS: Final = _rows(PHASES)
_CONFIGURED: Final = tuple((entry.field, entry.configure) for entry in ROUTE.entries if entry.configure is not None)


HEADER: Final = "| | Policy | Why at this place |"


def page() -> str:
    """Return docs/pipeline.md."""
    lines = ["# The order in which policies run", ""]
    lines += [
        "A request passes these phases from the top to the bottom. For example, `cors` answers a preflight request ",
        "before `authorization` could refuse it.",
        "",
        "A policy whose expression reads `request.body` waits for the body, up to the limit of the route's `buffer` or",
        "of `frontendPolicies.http.maxBufferSize`. Of a longer body, only `request.bodyPrefix` has a value.",
        "",
        "This page is generated from the tables in `headgate.pipeline.phases`.",
    ]
    for phase in PHASES:
        lines += ["", f"## {phase.name.capitalize()} phase, once per {phase.per}", "", HEADER, "|---|---|---|"]
        lines += [
            f"| {number} | {entry.policy} | {entry.why if entry.built else 'not built yet'} |"
            for number, entry in enumerate(phase.entries, start=1)
        ]
    lines += ["", "## Response", "", "| | Policy | Of the | Why at this place |", "|---|---|---|---|"]
    lines += [f"| {number} | {one.policy} | {one.level} | {one.why} |" for number, one in enumerate(RESPONSE, start=1)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
