"""Compiles LLM backends to engine objects: the provider of each model, and the form of its requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Final

from headgate.backend.llm import copilot
from headgate.backend.llm.bound_ids import BoundIds, account_of
from headgate.backend.llm.credentials import brings_key
from headgate.backend.llm.format_routes import format_routes_of
from headgate.backend.llm.long_bodies import reading_step
from headgate.backend.llm.model_ids import model_ids
from headgate.backend.llm.off_loop import CODED_BYTES, LONG_BYTES, PEEK_BYTES
from headgate.backend.llm.own_errors import speak
from headgate.document.lazy_dataclass import replace
from headgate.ir.endpoint import Endpoint
from headgate.ir.model import (
    NO_EDITS,
    AiBackend,
    BodyEdits,
    LlmModel,
    LlmResources,
    LlmRouter,
    VirtualModel,
    VirtualTarget,
)
from headgate.ir.policy.health import Eviction, Health
from headgate.ir.policy.prompt_guard import PromptEnrichment
from headgate.ir.policy.retry import RetryPolicy
from headgate.net.authority import rewritten_authority
from headgate.pipeline import phases
from headgate.pipeline.steps import at_host
from headgate.policy.authorization import compile_authorization
from headgate.policy.environment import Environment
from headgate.policy.health import compile_health
from headgate.policy.retry import compile_budget
from headgate_engine.context.request import Reply
from headgate_engine.link.backend import HOST
from headgate_engine.link.endpoints import EndpointSet
from headgate_engine.link.endpoints import EndpointState as EndpointState
from headgate_engine.link.pool import Pool
from headgate_engine.llm.backend import LlmBackend
from headgate_engine.llm.estimate import tokens_of_document
from headgate_engine.llm.prices import PriceList
from headgate_engine.llm.public import HeaderMatches, PublicModel
from headgate_engine.llm.resources import Resources
from headgate_engine.llm.router import ModelRouter
from headgate_engine.llm.target import LlmEdits, LlmGroup, LlmTarget, ModelEntry
from headgate_engine.llm.target import VirtualEntry as VirtualEntry
from headgate_engine.plan.plans import BackendPlan
from headgate_engine.plan.retry import RetryPlan
from headgate_engine.steps.authorization import AuthorizationStep

NS_PER_MS = 1_000_000
MAX_RETRIES: Final = 255
# Answers that another provider may not give: too many requests, broken, overloaded (529 is Anthropic's).
FAILED_OVER: Final = (408, 429, 500, 502, 503, 504, 529)
# What a provider is judged by that has others beside it, where nobody says otherwise.
DEFAULT_HEALTH: Final = Health(eviction=Eviction(consecutive=3))

# Never sent: a model that the rules refuse is passed over.
DENIED: Final = Reply(403, b"", (), "Authorization")

EndpointMaker = Callable[[str, str, Endpoint], EndpointState]


def _added_tokens(enrichment: PromptEnrichment | None) -> int:
    """Return about how many tokens added prompts have: what an estimate grows by with them."""
    if enrichment is None:
        return 0
    turns = [{"role": role, "content": text} for role, text in (*enrichment.prepend, *enrichment.append)]
    full, empty = (tokens_of_document("messages", {"messages": messages}) for messages in (turns, []))
    return full - empty


class LlmCompiler:
    """Compiles the models of one configuration.

    prices: of the cost catalog, None without one; tags: those of Copilot's models there. log_payload: the request log
    wants prompts and answers. pool_of: the pool of an endpoint. member: what is known of the endpoint of a model, by
    owner and key, over reloads.
    """

    def __init__(
        self,
        pool_of: Callable[[Endpoint], Pool],
        member: EndpointMaker,
        env: Environment,
        prices: PriceList | None = None,
        tags: copilot.Tags = MappingProxyType({}),
        *,
        log_payload: bool = False,
    ) -> None:
        self._prices = prices
        self._tags = tags
        self._log_payload = log_payload
        self._pool_of = pool_of
        self._member = member
        self._env = env
        self._largest = 1

    def router(self, router: LlmRouter) -> LlmBackend:
        """Return the backend of an `llm` section."""
        models = [self._public(model) for model in router.models]
        virtual = [self._virtual(one) for one in router.virtual_models]
        found = ModelRouter(models, virtual, routes=dict(router.routes), failover=self._failover())
        found.resources = self._resources(router.resources)
        return self._equipped(found)

    def _resources(self, found: LlmResources) -> Resources | None:
        if self._env.sealer is None:
            return None
        providers = {model.account: self._public(model) for model in found.providers}
        ids = BoundIds(self._env.sealer("llm resource").stable())
        return Resources(ids, providers, found.default_provider, shared_lists=found.shared_lists)

    def _equipped(self, router: ModelRouter) -> LlmBackend:
        router.prices = self._prices
        router.log_payload = self._log_payload
        router.wanted = self._env.wanted
        router.max_body = self._env.max_body
        backend = LlmBackend(router, speak)
        backend.long_bytes, backend.coded_bytes, backend.peek_bytes = LONG_BYTES, CODED_BYTES, PEEK_BYTES
        # No part of it holds the backend: plans have no cycles.
        backend.reading = BackendPlan("long body", "llm", HOST)
        backend.reading.max_body = self._env.max_body
        backend.reading.request_steps = (reading_step(router, backend.reads_request),)
        return backend

    def _public(self, model: LlmModel) -> PublicModel:
        return PublicModel(
            model.pattern,
            self._entry(model.pattern, ((model,),)),
            matches=self._matches(model),
            rules=self._rules(model),
            source=model_ids(model, self._env),
        )

    def _rules(self, model: LlmModel) -> AuthorizationStep | None:
        if model.rules is None:
            return None
        return compile_authorization(model.rules, self._env, DENIED, "llm")

    def backend(self, backend: AiBackend, retry: RetryPolicy | None) -> LlmBackend:
        """Return the backend of an `ai` section, whose router has one entry for every model."""
        entry = self._entry(backend.name, backend.groups, retry)
        return self._equipped(ModelRouter(routes=dict(backend.routes), sole_entry=entry, failover=self._failover()))

    def _failover(self) -> RetryPlan | None:
        others = min(self._largest - 1, MAX_RETRIES)
        return RetryPlan(others, FAILED_OVER, budget=compile_budget()) if others else None

    def _entry(
        self, name: str, groups: Iterable[tuple[LlmModel, ...]], retry: RetryPolicy | None = None
    ) -> ModelEntry:
        given = tuple(groups)
        several = sum(len(group) for group in given) > 1
        made = [LlmGroup([self._target(model, several, retry) for model in group]) for group in given]
        # One for all of a backend's providers.
        sticky = given[0][0].policies.affinity
        return self._known(ModelEntry(name, made, None if sticky is None else self._env.program(sticky, "llm")))

    def _known(self, entry: ModelEntry) -> ModelEntry:
        self._largest = max(self._largest, entry.size)
        return entry

    def _alternatives(self, target: VirtualTarget, slot: int, several: bool) -> list[LlmTarget]:
        """Return the targets of which a request gets the first that it fits."""
        found = [self._target(model, several, None) for model in (target.model, *target.others)]
        for one, model in zip(found, (target.model, *target.others), strict=True):
            one.matches = self._matches(model)
            one.slot = slot
        return found

    def _matches(self, model: LlmModel) -> HeaderMatches | None:
        entries = [[(one.name, one.kind, one.value) for one in entry] for entry in model.matches]
        return HeaderMatches(entries) if entries else None

    def _virtual(self, virtual: VirtualModel) -> VirtualEntry:
        targets = virtual.targets
        if virtual.kind == "failover":
            levels = sorted({target.priority for target in targets})
            made = [
                LlmGroup([one for at, target in enumerate(targets, start=1) if target.priority == level
                          for one in self._alternatives(target, at, len(targets) > 1)])
                for level in levels
            ]  # fmt: skip
            return VirtualEntry(virtual.name, [self._known(ModelEntry(virtual.name, made))])
        entries = [self._choices(target) for target in targets]
        if virtual.kind == "weighted":
            return VirtualEntry(virtual.name, entries, weights=[target.weight for target in targets])
        conditions = [None if one.when is None else self._env.program(one.when, "llm") for one in targets]
        return VirtualEntry(virtual.name, entries, conditions=conditions)

    def _choices(self, target: VirtualTarget) -> ModelEntry | tuple[PublicModel, ...]:
        first = target.model
        if not first.matches and first.rules is None:
            return self._entry(first.pattern, ((first,),))
        return tuple(self._public(model) for model in (first, *target.others))

    def _target(self, model: LlmModel, several: bool, retry: RetryPolicy | None) -> LlmTarget:
        provider = model.provider
        if model.edits.unsupported is not None:
            provider = replace(provider, unsupported=model.edits.unsupported)
        families, family = format_routes_of(provider, model.edits.caching, self._tags)
        elsewhere = model.provider.rerank
        if elsewhere is not None:
            for route in (routes["rerank"] for routes in families.values() if "rerank" in routes):
                route.pool = self._pool_of(elsewhere)
                route.authority = rewritten_authority(elsewhere)
        target = LlmTarget(
            self._plan(model, several, retry),
            model.provider.kind,
            families,
            family=family,
            pinned=model.pinned_model,
            edits=self._edits(model.edits),
            short_limit=model.provider.family in ("openai", "azure", "copilot"),
        )
        target.own_key = brings_key(model.policies.auth)
        target.rest = model.rest
        target.account = account_of(model)
        target.max_answer = self._env.max_answer
        target.added = _added_tokens(model.edits.enrichment)
        target.guarded = bool(model.edits.guard or model.edits.enrichment)
        target.rules = self._rules(model)
        return target

    def _plan(self, model: LlmModel, several: bool, retry: RetryPolicy | None) -> BackendPlan:
        provider, env = model.provider, self._env
        policies = at_host(model.policies, provider.endpoint.host)
        plan = BackendPlan(model.key, "llm", HOST)
        plan.pool = self._pool_of(provider.endpoint)
        plan.authority = rewritten_authority(provider.endpoint)
        plan.request_steps = phases.request_steps("provider", replace(model, policies=policies), env)
        plan.final_steps = phases.request_steps("departure", policies, env)
        phases.set_response(plan, "backend", policies, env)
        plan.request_timeout_ns = (policies.request_timeout_ms or 0) * NS_PER_MS
        plan.first_event_ns = model.timeouts.first_event_ms * NS_PER_MS
        plan.first_words_ns = model.timeouts.first_words_ms * NS_PER_MS
        plan.stall_ns = model.timeouts.stall_ms * NS_PER_MS
        plan.max_body = env.max_body
        health = None
        if several or policies.health is not None:
            health = compile_health(policies.health or DEFAULT_HEALTH, retry, env, limited=policies.health is None)
        # One that stands alone and is not watched is never evicted, but operators see how it does.
        known = self._member(f"llm/{model.key}", provider.endpoint.address, provider.endpoint)
        plan.endpoints = EndpointSet([known], health)
        return plan

    def _edits(self, edits: BodyEdits) -> LlmEdits | None:
        if (edits.overrides, edits.defaults, edits.transformations, edits.final, edits.aliases) == (
            NO_EDITS.overrides, NO_EDITS.defaults, (), (), (),
        ):  # fmt: skip
            return None
        return LlmEdits(
            json.loads(edits.overrides),
            json.loads(edits.defaults),
            [(name, self._env.program(text, "llm")) for name, text in edits.transformations],
            [(name, self._env.program(text, "llm")) for name, text in edits.final],
            edits.aliases,
        )
