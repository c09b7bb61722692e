"""Which formats a provider takes, and in which it is asked."""

from __future__ import annotations

import pytest

from headgate.backend.llm.format_routes import CLAUDE, OTHERS, format_routes_of
from headgate.config.llm_providers import PROVIDERS, hosted
from headgate.ir.endpoint import Endpoint
from headgate.ir.model import AzureResource, LlmProvider, ProviderFormat

PLACE = Endpoint(key="k", host="h", port=1)


def provider(name: str) -> LlmProvider:
    vendor = hosted(name)
    return LlmProvider(kind=vendor.kind, family=vendor.family, endpoint=PLACE, formats=vendor.formats)


TABLE = {
    "openai": {"completions": "completions", "responses": "responses", "messages": "completions",
               "gemini": "completions", "text": "completions"},
    "anthropic": {"completions": "messages", "responses": "messages", "messages": "messages", "gemini": "messages",
                  "text": "messages", "gemini_count_tokens": "count_tokens"},
    "gemini": {"completions": "gemini", "responses": "completions", "messages": "completions"},
    "ollama": {"completions": "completions", "gemini": "completions", "text": "text"},
    "groq": {"completions": "completions", "responses": "responses", "messages": "completions"},
    "mistral": {"completions": "completions", "responses": "completions", "messages": "completions"},
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_what_each_client_s_format_becomes(name: str) -> None:
    routes, family = format_routes_of(provider(name))
    assert (family is None) == (name != "openai")
    assert {client: routes[""][client].upstream for client in TABLE[name]} == TABLE[name]
    assert all((route.translation is None) == (route.upstream == client) for client, route in routes[""].items())


@pytest.mark.parametrize(
    ("model", "completions", "text"),
    [("gpt-5", "completions", "completions"), ("o3-pro", "responses", "responses"), ("gpt-5.1-codex-max", "responses", "responses"),
     ("codex-mini-latest", "responses", "responses"), ("o4-mini-deep-research", "responses", "responses"),
     ("gpt-5-pro-2025-10-06", "responses", "responses"), ("gpt-3.5-turbo-instruct", "completions", "text"),
     ("openai/babbage-002", "completions", "text"), ("o3", "completions", "completions")],
)  # fmt: skip
def test_openai_s_models_differ_in_what_they_take(model: str, completions: str, text: str) -> None:
    families, family = format_routes_of(provider("openai"))
    assert family is not None
    routes = families[family(model)]
    assert (routes["completions"].upstream, routes["text"].upstream) == (completions, text)


@pytest.mark.parametrize("client", ["completions", "messages", "responses", "gemini"])
def test_a_custom_provider_is_asked_in_the_client_s_own_format_where_it_can_be(client: str) -> None:
    spoken = ("generateContent", "completions", "messages", "responses")
    custom = LlmProvider(
        kind="custom", family="custom", endpoint=PLACE, formats=tuple(ProviderFormat(type=one) for one in spoken)
    )
    routes, _ = format_routes_of(custom)
    assert routes[""][client].upstream == client
    assert routes[""][client].translation is None


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_provider_passes_what_nobody_reads(name: str) -> None:
    families, _ = format_routes_of(provider(name))
    assert all({"detect", "passthrough"} <= routes.keys() for routes in families.values())


# Client format -> what Copilot is asked in, by model.
COPILOT = {
    "claude-opus-4.5": {"completions": "completions", "messages": "messages", "responses": "messages"},
    "grok-4": {"completions": "responses", "messages": "responses", "responses": "responses"},
    "mai-1": {"completions": "responses", "messages": "responses", "responses": "responses"},
    "gemini-3-pro": {"completions": "completions", "messages": "completions", "responses": "completions"},
    "gpt-4.1": {"completions": "completions", "messages": "completions", "responses": "completions"},
    "gpt-5.4": {"completions": "completions", "messages": "completions", "responses": "responses"},
    "gpt-5-mini": {"completions": "completions", "messages": "completions", "responses": "responses"},
    "gpt-5.1-codex": {"completions": "responses", "messages": "responses", "responses": "responses"},
    "o9": {"completions": "completions", "messages": "completions", "responses": "completions"},
    "tagged": {"completions": "messages", "messages": "messages", "responses": "responses"},
}
CHATS = ("completions", "messages", "responses")


@pytest.mark.parametrize("model", COPILOT)
def test_what_copilot_is_asked_in_depends_on_the_model(model: str) -> None:
    tags = {"tagged": ["anthropic_messages", "openai_responses", "unknown"]}
    families, family = format_routes_of(provider("copilot"), tags=tags)
    assert family is not None
    routes = families[family(model)]
    assert {client: routes[client].upstream for client in CHATS if client in routes} == COPILOT[model]
    assert (routes["embeddings"].upstream, routes["rerank"].upstream) == ("copilot_embeddings", "rerank")
    assert "count_tokens" not in routes
    # Claude's input counts no cache, whatever it is asked in.
    assert routes["completions"].exclusive is model.startswith("claude-") if "completions" in routes else True


def test_a_custom_provider_takes_what_it_declares() -> None:
    only = LlmProvider(kind="c", family="custom", endpoint=PLACE, formats=(ProviderFormat(type="responses"),))
    routes, _ = format_routes_of(only)
    assert {client: route.upstream for client, route in routes[""].items() if client not in ("detect", "passthrough")} == {
        "responses": "responses", "messages": "responses", "completions": "responses", "gemini": "responses",
        "text": "responses", "converse": "responses",
    }  # fmt: skip


def test_claude_at_azure_speaks_messages() -> None:
    azure = LlmProvider(
        kind="azure", family="azure", endpoint=PLACE, azure=AzureResource(name="r", kind="foundry", project="p")
    )
    routes, family = format_routes_of(azure)
    assert family is not None
    assert (family("claude-3"), family("gpt-5")) == (CLAUDE, OTHERS)
    assert routes[CLAUDE]["completions"].upstream == "messages"
    assert routes[OTHERS]["messages"].upstream == "completions"
