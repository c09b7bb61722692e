"""Configurations of the LiteLLM proxy."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from headgate.config.foreign.litellm import litellm
from headgate.config.foreign.notes import ImportNotes
from headgate.config.load import TextSource, load
from headgate.document.write import write

GROUP = """
model_list:
- {model_name: big, litellm_params: {model: openai/gpt-5, api_key: os.environ/KEY, rpm: 6}}
- {model_name: big, litellm_params: {model: anthropic/claude-sonnet-5, weight: 3}}
- {model_name: small, litellm_params: {model: gpt-5-mini}}
"""


def translated(text: str) -> tuple[Any, list[str]]:
    """The configuration, which loads, and the notes."""
    notes = ImportNotes()
    tree = litellm(yaml.safe_load(text), notes)
    load(TextSource(write(tree)), environ={"KEY": "secret"})
    return tree, notes.lines


def test_deployments_of_a_name_share_requests_by_weight() -> None:
    tree, _ = translated(GROUP)
    llm = tree["llm"]
    assert [(one["name"], one.get("visibility", "public"), one["provider"], one["params"]) for one in llm["models"]] == [
        ("big--1", "internal", "openAI", {"model": "gpt-5", "apiKey": "${KEY}"}),
        ("big--2", "internal", "anthropic", {"model": "claude-sonnet-5"}),
        ("small", "public", "openAI", {"model": "gpt-5-mini"}),
    ]
    assert llm["virtualModels"] == [
        {"name": "big", "routing": {"weighted": {"targets": [{"model": "big--1", "weight": 6}, {"model": "big--2", "weight": 3}]}}}
    ]


@pytest.mark.parametrize("section", ["litellm_settings", "router_settings"])
def test_fallbacks_are_later_priorities(section: str) -> None:
    tree, notes = translated(GROUP + f"{section}: {{fallbacks: [{{small: [big, gone]}}], allowed_fails: 2, cooldown_time: 30}}\n")
    [big, small] = tree["llm"]["virtualModels"]
    assert big["name"] == "big"
    assert small == {
        "name": "small",
        "routing": {"failover": {"targets": [
            {"model": "small--1", "priority": 0}, {"model": "big--1", "priority": 1}, {"model": "big--2", "priority": 1},
        ]}},
    }  # fmt: skip
    assert all(one["health"] == {"eviction": {"consecutiveFailures": 3, "duration": "30s"}} for one in tree["llm"]["models"])
    assert f"{section}.fallbacks: there is no model 'gone' to fall back to" in notes


def test_default_fallbacks_are_for_all_others() -> None:
    tree, _ = translated(GROUP + "router_settings: {default_fallbacks: [small], fallbacks: [{small: [big]}]}\n")
    [big, small] = tree["llm"]["virtualModels"]
    assert [one["model"] for one in big["routing"]["failover"]["targets"]] == ["big--1", "big--2", "small--1"]
    assert [one["model"] for one in small["routing"]["failover"]["targets"]] == ["small--1", "big--1", "big--2"]


def test_aliases_are_names_of_the_same_models() -> None:
    tree, notes = translated(GROUP + "router_settings: {model_group_alias: {a: big, b: {model: small, hidden: true}, c: gone}}\n")
    found = {one["name"]: one["routing"] for one in tree["llm"]["virtualModels"]}
    assert found["a"] == found["big"]
    assert found["b"] == {"weighted": {"targets": [{"model": "small"}]}}
    assert "router_settings.model_group_alias.c: there is no model 'gone'" in notes


def test_the_master_key_guards_models_and_servers() -> None:
    text = GROUP + "general_settings: {master_key: os.environ/KEY}\nmcp_servers: {wiki: {url: https://wiki.example/mcp}}\n"
    tree, _ = translated(text)
    keys = {"apiKey": {"mode": "strict", "keys": [{"key": "${KEY}", "metadata": {"name": "master"}}]}}
    assert tree["llm"]["policies"] == keys
    assert tree["mcp"] == {"port": 4001, "targets": [{"name": "wiki", "mcp": {"host": "https://wiki.example/mcp"}}], "policies": keys}
    assert "anyone who can reach the port" in translated(GROUP)[1][-1]


def test_prices_of_a_token_are_prices_of_a_million() -> None:
    tree, notes = translated("""
model_list:
- model_name: a
  litellm_params: {model: openai/gpt-5, input_cost_per_token: 1.25e-06}
  model_info: {output_cost_per_token: 0.00001, cache_read_input_token_cost: free}
""")
    [source] = tree["config"]["modelCatalog"]
    assert source["inline"]["providers"] == {"openai": {"models": {"gpt-5": {"rates": {"input": "1.25", "output": "10"}}}}}
    assert "model_list[0].model_info.cache_read_input_token_cost: is no number" in notes


def test_what_has_no_counterpart_is_told() -> None:
    _, notes = translated(GROUP + """
- {model_name: odd, litellm_params: {model: sagemaker/x}}
- {model_name: big*, litellm_params: {model: openai/*}}
- {model_name: big*, litellm_params: {model: anthropic/*}}
- {litellm_params: {}}
router_settings: {num_retries: 2, routing_strategy: latency-based-routing}
litellm_settings: {drop_params: true, cache: true}
general_settings: {database_url: postgresql://x}
environment_variables: {A: b}
guardrails: []
""")
    assert [line.partition(": ")[0] for line in notes] == [
        "model_list[0].litellm_params.rpm", "model_list[3].litellm_params.model", "model_list[6]", "model_list", "guardrails",
        "router_settings.num_retries", "litellm_settings.cache", "router_settings.routing_strategy", "environment_variables",
        "general_settings.database_url", "general_settings.master_key",
    ]  # fmt: skip


def test_parameters_that_a_provider_does_not_know_are_dropped_where_litellm_drops_them() -> None:
    tree, _ = translated(GROUP + "litellm_settings: {drop_params: true}\n")
    assert {one["unsupportedParameters"] for one in tree["llm"]["models"]} == {"drop"}


def test_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="there are no models"):
        litellm({"general_settings": {}}, ImportNotes())


def test_servers_alone_have_the_gateway() -> None:
    tree, _ = translated("mcp_servers: {wiki: {url: https://wiki.example/mcp}}")
    assert tree == {
        "gateways": {"default": {"port": 4000}},
        "mcp": {"gateways": ["default"], "targets": [{"name": "wiki", "mcp": {"host": "https://wiki.example/mcp"}}]},
    }
