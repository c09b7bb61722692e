"""LLM backends in the configuration dump."""

from __future__ import annotations

import json
from typing import Any

from headgate.config.policy import prompt_enrichment, prompt_guard
from headgate.ir.model import BodyEdits, LlmRouter, VirtualModel

Json = dict[str, Any]


def edits(found: BodyEdits) -> Json:
    """Return what is changed in bodies, without what is empty."""
    shown = {
        "overrides": json.loads(found.overrides),
        "defaults": json.loads(found.defaults),
        "transformations": dict(found.transformations),
        "finalTransformations": dict(found.final),
        "modelAliases": dict(found.aliases),
        "routes": dict(found.routes),
        "prompts": None if found.enrichment is None else prompt_enrichment.dump(found.enrichment),
        "promptGuard": None if found.guard is None else prompt_guard.dump(found.guard),
    }
    return {key: value for key, value in shown.items() if value}


def router(backend: LlmRouter) -> Json:
    """Return the models of an `llm` section by key, and its virtual models."""
    shown: Json = {"models": [model.key for model in backend.models]}
    if backend.virtual_models:
        shown["virtualModels"] = [_virtual(one) for one in backend.virtual_models]
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
