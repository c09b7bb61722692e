"""Whether the models of two configurations are the same."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.cluster.convert.same_models import router_differences
from headgate.cluster.convert.verify import _different
from headgate.config.load import TextSource, load
from headgate.ir.model import LlmRouter

MODELS = """\
- {name: one, provider: openAI, params: {apiKey: a}}
- {name: "ab*", provider: openAI, params: {apiKey: a}}
- {name: "*ab", provider: groq, params: {apiKey: a}}
"""
VIRTUAL = "[{name: v, routing: {weighted: {targets: [{model: one, weight: 2}]}}}]"


def router(models: str, virtual: str = VIRTUAL) -> LlmRouter:
    text = f"llm:\n  virtualModels: {virtual}\n  models:\n" + "".join(f"  {line}\n" for line in models.splitlines())
    found: Any = load(TextSource(text), environ={}).gateway.binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(found, LlmRouter)
    return found


def differences(models: str, virtual: str = VIRTUAL) -> list[str]:
    return list(router_differences(router(MODELS), router(models, virtual), "llm", _different))


def test_names_of_their_own_are_no_difference() -> None:
    assert differences(MODELS) == []
    assert differences(MODELS.replace("{name: one,", "{name: one, id: other,")) == []


@pytest.mark.parametrize(
    ("models", "virtual", "where"),
    [
        (MODELS.replace("name: one", "name: other"), VIRTUAL.replace("model: one", "model: other"), "llm.models"),
        (MODELS.replace("provider: groq", "provider: xai"), VIRTUAL, "llm.models *ab.provider"),
        (MODELS, VIRTUAL.replace("weight: 2", "weight: 3"), "llm.virtualModels v[1].weight"),
        (MODELS, VIRTUAL.replace("name: v", "name: w"), "llm.virtualModels"),
        (MODELS, VIRTUAL.replace("model: one", "model: abc"), "llm.virtualModels v[1].model"),
        ("\n".join([MODELS.splitlines()[0], *reversed(MODELS.splitlines()[1:])]), VIRTUAL, "llm.models"),
    ],
)
def test_a_difference_is_told(models: str, virtual: str, where: str) -> None:
    assert any(one.startswith(where) for one in differences(models, virtual)), differences(models, virtual)
