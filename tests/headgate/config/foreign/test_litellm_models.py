"""Deployments of LiteLLM: providers, addresses, names."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.config.foreign.litellm_models import COMPATIBLE, PROVIDERS, deployment, value
from headgate.config.foreign.notes import ImportNotes
from headgate.config.load import TextSource, load
from headgate.document.write import write


def made(group: str = "a", **parameters: Any) -> tuple[Any, list[str]]:
    notes = ImportNotes()
    return deployment({"model_name": group, "litellm_params": parameters}, "model_list[0]", notes), notes.lines


@pytest.mark.parametrize("prefix", sorted(PROVIDERS | dict.fromkeys(COMPATIBLE)))
def test_every_provider_loads(prefix: str) -> None:
    found, _ = made(
        model=f"{prefix}/some-model", api_key="key", aws_region_name="eu-west-1", vertex_project="p",
        **({"api_base": "http://127.0.0.1:1/v1"} if prefix not in ("azure", "azure_ai") else {"api_base": "https://x.openai.azure.com"}),
    )  # fmt: skip
    load(TextSource(write({"llm": {"models": [{"name": "a", **found.settings}]}})), environ={})


@pytest.mark.parametrize(("base", "expected"), [
    ("https://my-eu.openai.azure.com/", {"azureResourceName": "my-eu", "azureResourceType": "openAI"}),
    ("https://my.services.ai.azure.com/models", {"azureResourceName": "my", "azureResourceType": "foundry"}),
])  # fmt: skip
def test_a_resource_of_azure_is_in_its_address(base: str, expected: dict[str, str]) -> None:
    found, notes = made(model="azure/d", api_base=base, api_version="2025-04-01-preview")
    assert found.settings["params"] == {"model": "d", **expected, "azureApiVersion": "2025-04-01-preview"}
    assert notes == []


def test_another_address_of_azure_is_told() -> None:
    assert "set azureResourceName" in made(model="azure/d", api_base="os.environ/BASE")[1][0]


@pytest.mark.parametrize(("model", "kind", "name"), [
    ("gpt-5", "openAI", "gpt-5"), ("o3-mini", "openAI", "o3-mini"), ("claude-opus-5", "anthropic", "claude-opus-5"),
    ("bedrock/converse/amazon.nova-pro-v1:0", "bedrock", "amazon.nova-pro-v1:0"), ("bedrock/a.b", "bedrock", "a.b"),
    ("openrouter/google/gemini-3", "openrouter", "google/gemini-3"),
])  # fmt: skip
def test_names_of_models(model: str, kind: str, name: str) -> None:
    found, _ = made(model=model)
    assert (found.settings["provider"], found.settings["params"]["model"]) == (kind, name)


@pytest.mark.parametrize(("group", "model", "edit"), [
    ("openai/*", "openai/*", 'llmRequest.model.stripPrefix("openai/")'), ("gpt-*", "openai/gpt-*", None), ("*", "openai/*", None), ("*", "*", None),
    ("my/*", "openai/gpt-*", '"gpt-" + llmRequest.model.stripPrefix("my/")'), ("*", "openrouter/meta/*", '"meta/" + llmRequest.model'),
])  # fmt: skip
def test_patterns_keep_what_the_star_stands_for(group: str, model: str, edit: str | None) -> None:
    found, _ = made(group, model=model)
    assert found.settings.get("transformation") == (None if edit is None else {"model": edit})
    assert "params" not in found.settings


@pytest.mark.parametrize("model", ["sagemaker/x", "nobody-knows", "os.environ/MODEL"])
def test_a_provider_that_is_not_known_is_told(model: str) -> None:
    found, notes = made(model=model)
    assert found is None
    assert notes[0].startswith("model_list[0].litellm_params.model: ")


def test_an_address_makes_a_name_without_provider_usable() -> None:
    found, notes = made(model="qwen3", api_base="http://10.0.0.5:8000/v1")
    assert found.settings["params"] == {"model": "qwen3", "baseUrl": "http://10.0.0.5:8000/v1"}
    assert notes == []
    assert "is missing" in made(model="vllm/x")[1][0]


def test_parameters_of_requests_are_defaults_and_the_rest_is_told() -> None:
    found, notes = made(model="gpt-5", temperature=0.2, max_tokens=10, extra_headers={"x-a": "$1"}, timeout=3)
    assert found.settings["defaults"] == {"temperature": 0.2, "max_tokens": 10}
    assert found.settings["requestHeaders"] == {"set": {"x-a": "$$1"}}
    assert notes == ["model_list[0].litellm_params.timeout: has no counterpart"]


@pytest.mark.parametrize("entry", [None, {}, {"model_name": "a"}, {"model_name": "a", "litellm_params": {}}, {"litellm_params": {"model": "gpt-5"}}])
def test_half_an_entry_is_told(entry: Any) -> None:
    notes = ImportNotes()
    assert deployment(entry, "model_list[0]", notes) is None
    assert len(notes.lines) == 1


def test_values() -> None:
    assert [value(one) for one in ("os.environ/A_B", "pa$$word", 3, None)] == ["${A_B}", "pa$$$$word", 3, None]
    with pytest.raises(ValueError, match="not a valid name of a variable"):
        value("os.environ/a b")
