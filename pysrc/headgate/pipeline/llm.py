"""The `llm` section as engine objects: which provider gets which model, and how its requests must look."""

from __future__ import annotations

from collections.abc import Callable

from headgate.ir.endpoint import Endpoint
from headgate.ir.model import LlmModel, LlmRouter
from headgate.net.authority import rewritten_authority
from headgate.pipeline import steps
from headgate.policy.environment import Environment
from headgate_engine.link.pool import Pool
from headgate_engine.llm.router import LlmTarget, ModelRouter
from headgate_engine.plan.plans import BackendPlan

LLM = 1  # BackendPlan kind (headgate_engine/plan/plans.pxd)
NS_PER_MS = 1_000_000

# What ends the path of a client that speaks a format (`llm.md` route types); a format not listed passes as it is.
FORMAT_SUFFIXES = {
    "completions": "/chat/completions",
    "responses": "/responses",
    "embeddings": "/embeddings",
    "rerank": "/rerank",
}


def compile_models(
    router: LlmRouter, pool_of: Callable[[Endpoint], Pool], env: Environment
) -> ModelRouter:
    """Return the model router of an `llm` section."""
    return ModelRouter([_target(model, pool_of, env) for model in router.models])


def _target(model: LlmModel, pool_of: Callable[[Endpoint], Pool], env: Environment) -> LlmTarget:
    provider = model.provider
    plan = BackendPlan(model.key, "llm", LLM)
    plan.pool = pool_of(provider.endpoint)
    plan.authority = rewritten_authority(provider.endpoint)
    plan.request_steps = steps.backend_request_steps(model.policies, env)
    plan.response_steps = steps.backend_response_steps(model.policies)
    plan.response_transforms = steps.response_transforms(model.policies, env)
    plan.hold = steps.response_hold(model.policies, env)
    plan.request_timeout_ns = (model.policies.request_timeout_ms or 0) * NS_PER_MS
    return LlmTarget(
        model.pattern,
        plan,
        provider.kind,
        path_prefix=provider.path_prefix,
        path_override=provider.path_override,
        paths={
            FORMAT_SUFFIXES[item.type]: item.path
            for item in provider.formats
            if item.path is not None and item.type in FORMAT_SUFFIXES
        },
        pinned=model.pinned_model,
    )
