"""Tools that vendors run: each is asked for where the provider has it, else it is told as lost."""

from __future__ import annotations

from typing import Any

import pytest
from llm_sdk_shapes import shape_faults

from headgate.dialect.llm import pairs
from headgate.dialect.llm.contract import Options

Json = dict[str, Any]
PLACE = {"country": "NO", "city": "Oslo"}
USER = {"role": "user", "content": "news?"}
CHAT: Json = {"messages": [USER], "web_search_options": {
    "search_context_size": "low", "user_location": {"type": "approximate", "approximate": PLACE}}}  # fmt: skip
RESPONSE: Json = {"input": "news?", "tools": [
    {"type": "web_search", "search_context_size": "low", "user_location": {"type": "approximate", **PLACE},
     "filters": {"allowed_domains": ["a.example"]}, "external_web_access": False},
    {"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["file-1"]}}]}  # fmt: skip
MESSAGE: Json = {"max_tokens": 9, "messages": [USER], "tools": [
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "allowed_domains": ["a.example"],
     "user_location": {"type": "approximate", **PLACE}},
    {"type": "code_execution_20250825", "name": "code_execution"}]}  # fmt: skip
GEMINI: Json = {"contents": [{"parts": [{"text": "news?"}]}], "tools": [
    {"google_search": {"timeRangeFilter": {"startTime": "2026-01-01T00:00:00Z"}}}, {"codeExecution": {}}]}  # fmt: skip
BODIES = {"completions": CHAT, "responses": RESPONSE, "messages": MESSAGE, "gemini": GEMINI}
WITH_PLACE = {"type": "approximate", **PLACE}
CASES = [
    ("completions", "responses", [{"type": "web_search", "search_context_size": "low", "user_location": WITH_PLACE}], set()),
    ("completions", "messages", [{"type": "web_search_20250305", "name": "web_search", "user_location": WITH_PLACE}],
     {"web_search_options.search_context_size"}),
    ("completions", "gemini", [{"googleSearch": {}}],
     {"web_search_options.search_context_size", "web_search_options.user_location"}),
    ("completions", "converse", None, {"web_search_options", "web_search_options.search_context_size", "tools[]"}),
    ("responses", "messages", [
        {"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["a.example"], "user_location": WITH_PLACE},
        {"type": "code_execution_20250825", "name": "code_execution"}],
     {"tools[].search_context_size", "tools[0].external_web_access", "tools[1].container"}),
    ("responses", "gemini", [{"googleSearch": {}}, {"codeExecution": {}}],
     {"tools[].search_context_size", "tools[].user_location", "tools[].allowed_domains", "tools[0].external_web_access",
      "tools[1].container"}),
    ("messages", "responses", [
        {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}, "user_location": WITH_PLACE},
        {"type": "code_interpreter", "container": {"type": "auto"}}], {"tools[0].max_uses"}),
    ("messages", "gemini", [{"googleSearch": {}}, {"codeExecution": {}}],
     {"tools[].user_location", "tools[].allowed_domains", "tools[].max_uses"}),
    ("gemini", "messages", [{"type": "web_search_20250305", "name": "web_search"},
                            {"type": "code_execution_20250825", "name": "code_execution"}],
     {"tools[0].googleSearch.timeRangeFilter"}),
    ("gemini", "responses", [{"type": "web_search"}, {"type": "code_interpreter", "container": {"type": "auto"}}],
     {"tools[0].googleSearch.timeRangeFilter"}),
]  # fmt: skip


@pytest.mark.parametrize(("client", "upstream", "tools", "lost"), CASES, ids=[f"{one[0]}-{one[1]}" for one in CASES])
def test_a_vendor_is_asked_for_what_it_runs(client: str, upstream: str, tools: Any, lost: set[str]) -> None:
    asked = pairs.PAIRS[client, upstream].request(BODIES[client], Options(model="m", vendor="v"))
    assert asked.body.get("tools") == tools
    assert set(asked.dropped) == lost
    assert shape_faults(upstream, asked.body) == []


@pytest.mark.parametrize("client", ["responses", "messages", "gemini"])
@pytest.mark.parametrize(
    ("vendor", "model", "searches"),
    [("openai", "gpt-4o-search-preview", True), ("openai", "gpt-5.2", False), ("openrouter", "openai/gpt-5.2", True),
     ("perplexity", "sonar", True), ("gcp.gemini", "gemini-2.5-pro", False), ("v", "m", False)],
)  # fmt: skip
def test_chat_completions_search_where_the_vendor_does(client: str, vendor: str, model: str, searches: bool) -> None:
    asked = pairs.PAIRS[client, "completions"].request(BODIES[client], Options(model=model, vendor=vendor))
    assert ("web_search_options" in asked.body) == searches
    assert asked.body.get("plugins") == ([{"id": "web"}] if vendor == "openrouter" else None)
    assert "tools" not in asked.body
    assert any(path.startswith("tools[") for path in asked.dropped)
    if searches and client != "gemini":
        place = {"type": "approximate", "approximate": PLACE}
        assert asked.body["web_search_options"]["user_location"] == place


@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gemini-3-pro"])
def test_gemini_has_them_without_functions_alone(model: str) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    asked = pairs.PAIRS["completions", "gemini"].request({**CHAT, "tools": tools}, Options(model=model))
    assert [list(tool) for tool in asked.body["tools"]] == [["functionDeclarations"]]
    assert asked.dropped == ("web_search_options",)


def test_functions_stay_beside_them() -> None:
    function = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
    body = {"input": "a", "tools": [{"type": "web_search"}, function], "tool_choice": "required"}
    asked = pairs.PAIRS["responses", "messages"].request(body, Options(model="m"))
    assert [tool["name"] for tool in asked.body["tools"]] == ["f", "web_search"]
    chat = pairs.PAIRS["responses", "completions"].request(body, Options(model="m", vendor="openrouter"))
    assert [tool["function"]["name"] for tool in chat.body["tools"]] == ["f"]
    assert chat.body["tool_choice"] == "required"
    assert chat.body["web_search_options"] == {}


def test_claude_on_vertex_runs_no_code() -> None:
    asked = pairs.PAIRS["responses", "messages"].request(RESPONSE, Options(model="m", vendor="gcp.vertex_ai"))
    assert [tool["name"] for tool in asked.body["tools"]] == ["web_search"]
    assert "tools[]" in asked.dropped
