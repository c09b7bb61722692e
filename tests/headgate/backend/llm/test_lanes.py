"""Which formats a provider takes, and in which it is asked."""

from __future__ import annotations

import pytest

from headgate.backend.llm.lanes import CLAUDE, OTHERS, lanes_of
from headgate.config.llm_providers import PROVIDERS, hosted
from headgate.ir.endpoint import Endpoint
from headgate.ir.model import AzureResource, LlmProvider, ProviderFormat

PLACE = Endpoint(key="k", host="h", port=1)


def provider(name: str) -> LlmProvider:
    vendor = hosted(name)
    return LlmProvider(kind=vendor.kind, family=vendor.family, endpoint=PLACE, formats=vendor.formats)


TABLE = {
    "openai": {"completions": "completions", "responses": "responses", "messages": "completions"},
    "anthropic": {"completions": "messages", "responses": "messages", "messages": "messages"},
    "gemini": {"completions": "gemini", "responses": "completions", "messages": "completions"},
    "groq": {"completions": "completions", "responses": "responses", "messages": "completions"},
    "mistral": {"completions": "completions", "responses": "completions", "messages": "completions"},
}


@pytest.mark.parametrize("name", TABLE)
def test_what_each_client_s_format_becomes(name: str) -> None:
    lanes, family = lanes_of(provider(name))
    assert family is None
    assert {client: lanes[""][client].upstream for client in TABLE[name]} == TABLE[name]
    assert all((lane.translation is None) == (lane.upstream == client) for client, lane in lanes[""].items())


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_provider_passes_what_nobody_reads(name: str) -> None:
    lanes, _ = lanes_of(provider(name))
    assert {"detect", "passthrough"} <= lanes[""].keys()


def test_a_custom_provider_takes_what_it_declares() -> None:
    only = LlmProvider(kind="c", family="custom", endpoint=PLACE, formats=(ProviderFormat(type="responses"),))
    lanes, _ = lanes_of(only)
    assert {client: lane.upstream for client, lane in lanes[""].items() if client not in ("detect", "passthrough")} == {
        "responses": "responses", "messages": "responses",
    }  # fmt: skip


def test_claude_at_azure_speaks_messages() -> None:
    azure = LlmProvider(
        kind="azure", family="azure", endpoint=PLACE, azure=AzureResource(name="r", kind="foundry", project="p")
    )
    lanes, family = lanes_of(azure)
    assert family is not None
    assert (family("claude-3"), family("gpt-5")) == (CLAUDE, OTHERS)
    assert lanes[CLAUDE]["completions"].upstream == "messages"
    assert lanes[OTHERS]["messages"].upstream == "completions"
