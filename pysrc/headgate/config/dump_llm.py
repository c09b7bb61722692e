"""LLM backends in the configuration dump."""

from __future__ import annotations

import json
from typing import Any

from headgate.config.policy import authorization, prompt_enrichment, prompt_guard
from headgate.ir.model import BodyEdits, LlmModel, LlmResources, LlmRouter, PromptCaching, VirtualModel

Json = dict[str, Any]


def edits(found: BodyEdits) -> Json:
    """Return the body edits that are not empty."""
    shown = {
        "overrides": json.loads(found.overrides),
        "defaults": json.loads(found.defaults),
        "transformations": dict(found.transformations),
        "finalTransformations": dict(found.final),
        "modelAliases": dict(found.aliases),
        "routes": dict(found.routes),
        "prompts": None if found.enrichment is None else prompt_enrichment.dump(found.enrichment),
        "promptCaching": None if found.caching is None else _caching(found.caching),
        "unsupportedParameters": found.unsupported,
        "promptGuard": None if found.guard is None else prompt_guard.dump(found.guard),
    }
    if found.guard is not None:
        from headgate.backend.llm.guards.coverage import summary  # with the first guard

        shown["guardCoverage"] = summary(found.guard)
    return {key: value for key, value in shown.items() if value}


def _caching(found: PromptCaching) -> Json:
    return {
        "cacheSystem": found.system,
        "cacheMessages": found.messages,
        "cacheTools": found.tools,
        "minTokens": found.least_tokens,
        "cacheMessageOffset": found.offset,
    }


def conditions(model: LlmModel) -> Json:
    """Return the conditions on requests for the model."""
    found: Json = {
        "headerMatches": [
            {"headers": [{"name": one.name, "value": {one.kind: one.value}} for one in entry]}
            for entry in model.matches
        ]
    }
    if model.rules is not None:
        found["authorization"] = authorization.dump(model.rules)
    if model.rest is not None:
        found["passthrough"] = model.rest
    return found


def router(backend: LlmRouter) -> Json:
    """Return the models of an `llm` section by key, and its virtual models."""
    shown: Json = {"models": [model.key for model in backend.models]}
    if backend.virtual_models:
        shown["virtualModels"] = [_virtual(one) for one in backend.virtual_models]
    if backend.resources != LlmResources():
        found = backend.resources
        shown["resources"] = {
            "providers": [one.account for one in found.providers],
            "defaultProvider": found.default_provider,
            "lists": "shared" if found.shared_lists else "own",
        }
        rules = next((one.rules for one in found.providers if one.rules is not None), None)
        if rules is not None:
            shown["resources"]["authorization"] = authorization.dump(rules)
    return shown


def _virtual(virtual: VirtualModel) -> Json:
    targets = []
    for target in virtual.targets:
        shown: Json = {"backend": target.model.key, "model": target.model.pinned_model}
        if virtual.kind == "weighted":
            shown["weight"] = target.weight
        elif virtual.kind == "failover":
            shown["priority"] = target.priority
        elif target.when is not None:
            shown["when"] = target.when
        targets.append(shown)
    return {"name": virtual.name, "routing": {virtual.kind: {"targets": targets}}}
