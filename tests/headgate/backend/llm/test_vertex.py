"""Names of models and bodies as Vertex AI has them."""

from __future__ import annotations

import json

import pytest

from headgate.backend.llm.format_routes import format_routes_of
from headgate.backend.llm.vertex import claude_body, claude_name, count_body, family_of, google_name
from headgate.ir.endpoint import Endpoint
from headgate.ir.model import LlmProvider, VertexPlace

NAMES = {
    "claude-sonnet-4-20250514": ("claude", "claude-sonnet-4@20250514"),
    "claude-x@20250514": ("claude", "claude-x@20250514"),
    "anthropic/claude-x": ("claude", "claude-x"),
    "publishers/anthropic/models/claude-x": ("claude", "claude-x"),
    "gemini-2.5-pro": ("gemini", "gemini-2.5-pro"),
    "google/gemini-2.5-pro": ("gemini", "gemini-2.5-pro"),
    "publishers/google/models/gemini-2.5-pro": ("gemini", "gemini-2.5-pro"),
    "models/gemini@1": ("gemini", "gemini@1"),
    "gemini-embedding-001": ("others", "gemini-embedding-001"),
    "gemini-x/../y": ("others", "gemini-x/../y"),
    "gemini-%2e": ("others", "gemini-%2e"),
    "meta/llama-4": ("others", "meta/llama-4"),
    "text-embedding-005": ("others", "text-embedding-005"),
}


@pytest.mark.parametrize("model", NAMES)
def test_names(model: str) -> None:
    family, name = NAMES[model]
    assert family_of(model) == family
    assert (claude_name if family == "claude" else google_name)(model) == name


def test_a_body_keeps_its_bytes_but_for_what_vertex_wants_otherwise() -> None:
    body = b'{"model":"claude-x", "max_tokens" : 9, "output_format":{"a":1}, "output_config":{}, "messages":[ ]}'
    told = claude_body(body, True)
    assert told == (
        b'{"max_tokens" : 9, "output_config":{}, "messages":[ ],"anthropic_version":"vertex-2023-10-16"}'
    )
    assert claude_body(told, False) == told
    assert json.loads(count_body(b'{"model":"claude-x-20250514","messages":[]}', False)) == {
        "model": "claude-x@20250514", "messages": [], "anthropic_version": "vertex-2023-10-16",
    }  # fmt: skip


def test_scopes_of_caches_are_taken_out_wherever_they_are() -> None:
    control = {"type": "ephemeral", "scope": "global"}
    body = {"system": [{"cache_control": control}], "tools": [{"scope": "kept", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"content": [{"x": [{"cache_control": control}]}]}]}  # fmt: skip
    told = json.loads(claude_body(json.dumps(body).encode(), False))
    assert told["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert told["messages"][0]["content"][0]["x"][0]["cache_control"] == {"type": "ephemeral"}
    assert told["tools"][0]["scope"] == "kept"
    untouched = b'{"a": "scope",  "scope":1, "cache_control":{ }}'
    assert claude_body(untouched, False).startswith(untouched[:-1])


def test_what_each_client_s_format_becomes() -> None:
    where = LlmProvider(
        kind="gcp.vertex_ai", family="vertex", endpoint=Endpoint(key="k", host="h", port=1), path_prefix="",
        vertex=VertexPlace(project="p"),
    )  # fmt: skip
    routes, family = format_routes_of(where)
    assert family is family_of
    both = {"detect": "detect", "passthrough": "passthrough", "embeddings": "vertex_embeddings", "rerank": "vertex_rerank"}
    assert {name: {client: route.upstream for client, route in found.items()} for name, found in routes.items()} == {
        "claude": both | {"messages": "messages", "count_tokens": "count_tokens", "completions": "messages", "responses": "messages",
                          "gemini": "messages", "text": "messages", "gemini_count_tokens": "count_tokens", "converse": "messages"},
        "gemini": both | {"gemini": "gemini", "gemini_count_tokens": "gemini_count_tokens", "completions": "gemini",
                          "messages": "gemini", "responses": "gemini", "text": "gemini", "converse": "gemini"},
        "others": both | {"completions": "completions", "messages": "completions", "responses": "completions",
                          "gemini": "completions", "text": "completions", "converse": "completions"},
    }  # fmt: skip
