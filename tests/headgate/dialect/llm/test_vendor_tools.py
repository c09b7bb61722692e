"""Tools that vendors run: each is asked for where the provider has it, else it is told as lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llm_cases import framed
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


def ran_by_claude(name: str, kind: str, printed: Json, **given: str) -> list[Json]:
    return [{"type": "server_tool_use", "id": "srvtoolu_1", "name": name, "input": given},
            {"type": kind, "tool_use_id": "srvtoolu_1", "content": printed}]  # fmt: skip


SHELL = ran_by_claude("bash_code_execution", "bash_code_execution_tool_result",
                      {"type": "bash_code_execution_result", "stdout": "4", "stderr": "", "return_code": 0, "content": []},
                      command="echo 4")  # fmt: skip
EDITED = ran_by_claude("text_editor_code_execution", "text_editor_code_execution_tool_result",
                       {"type": "text_editor_code_execution_create_result", "is_file_update": False}, path="a")  # fmt: skip
FETCHED = ran_by_claude("web_fetch", "web_fetch_tool_result", {"type": "web_fetch_result", "url": "https://a.example"},
                        url="https://a.example")  # fmt: skip
CALLED = [{"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "f", "server_name": "s", "input": {}},
          {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": [{"type": "text", "text": "4"}]}]  # fmt: skip
MCP_CALL = {"type": "mcp_call", "id": "mcp_1", "name": "f", "server_label": "s", "arguments": "{}", "output": "4"}
OPENED = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "open_page", "url": "u"}}
SHELLED = {"toolUse": {"toolUseId": "t", "name": "nova_code_interpreter", "type": "server_tool_use", "input": {}}}
GROUNDED = {"toolUse": {"toolUseId": "t", "name": "nova_grounding", "type": "server_tool_use", "input": {}}}
# What a provider ran, and the clients that are told of it by a mark alone.
UNTOLD: dict[str, tuple[str, list[Json], set[str]]] = {
    "shell": ("messages", SHELL, {"completions", "text", "converse"}),
    "editor": ("messages", EDITED, {"completions", "responses", "gemini", "text", "converse"}),
    "fetch": ("messages", FETCHED, {"gemini"}),
    "mcp": ("messages", CALLED, {"completions", "gemini", "text", "converse"}),
    "upload": ("messages", [{"type": "container_upload", "file_id": "f"}],
               {"completions", "responses", "gemini", "text", "converse"}),
    "mcp of responses": ("responses", [MCP_CALL], {"completions", "messages", "gemini", "text", "converse"}),
    "tools of a server": ("responses", [{"type": "mcp_list_tools", "id": "l", "tools": [], "server_label": "s"}], set()),
    "page": ("responses", [OPENED], {"messages", "gemini"}),
    "interpreter": ("converse", [SHELLED], {"completions", "messages", "responses", "gemini", "text"}),
    "search": ("converse", [GROUNDED], set()),
}


def answer_of(upstream: str, ran: list[Json]) -> Json:
    if upstream == "messages":
        return {"id": "m", "content": [*ran, {"type": "text", "text": "four"}], "stop_reason": "end_turn"}
    if upstream == "responses":
        said = {"type": "message", "content": [{"type": "output_text", "text": "four"}]}
        return {"id": "r", "status": "completed", "output": [*ran, said]}
    return {"output": {"message": {"content": [*ran, {"text": "four"}]}}, "stopReason": "end_turn"}


def events_of(upstream: str, ran: list[Json]) -> list[Json]:
    """Return the events of a stream without text, as far as they tell what ran."""
    if upstream == "messages":
        opened = [{"type": "content_block_start", "index": at, "content_block": block} for at, block in enumerate(ran)]
        stopped = [{"type": "content_block_stop", "index": at} for at in range(len(ran))]
        told = [event for pair in zip(opened, stopped, strict=True) for event in pair]
        return [{"event": event["type"], "data": event} for event in told]
    if upstream == "responses":
        return [{"event": "response.output_item.done", "data": {"type": "response.output_item.done", "output_index": 0, "item": item}}
                for item in ran]  # fmt: skip
    return [{"event": "contentBlockStart", "data": {"contentBlockIndex": 0, "start": block}} for block in ran]


WHAT_RAN = [(name, client) for name, (upstream, _, _) in UNTOLD.items() for client, other in pairs.PAIRS if other == upstream]


@pytest.mark.parametrize(("name", "client"), WHAT_RAN)
def test_what_a_client_s_format_cannot_say_of_it_is_marked(name: str, client: str) -> None:
    upstream, ran, marked = UNTOLD[name]
    pair = pairs.PAIRS[client, upstream]
    body = {"text": {"prompt": "2+2"}, "responses": {"input": "2+2"},
            "converse": {"messages": [{"role": "user", "content": [{"text": "2+2"}]}]}}.get(client, BODIES.get(client, {}))
    body = {key: value for key, value in body.items() if key not in ("tools", "web_search_options")}
    asked = pair.request(body, Options(model="m"))
    told = json.dumps(pair.reply(answer_of(upstream, ran), asked))
    assert "four" in told
    assert asked.untold == (client in marked)
    if name == "shell" and client in ("gemini", "responses"):
        assert "echo 4" in told
    stream = pair.stream(pair.request(body, Options(model="m", stream=True)))
    for piece in framed(pair, events_of(upstream, ran)):
        stream.feed(piece)
    assert stream.untold == (client in marked)
