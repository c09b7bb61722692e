"""Custom tools, tools that vendors run, sound and reasoning details through the gateway, with the vendors' own clients, whole and streamed."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai import types
from tests.end_to_end.llm_rig import Rig, anthropic_client, openai_client, served, stand_ins
from tests.end_to_end.provider_stand_in import DONE, Answer, chat, event, stream, whole

CONFIG = """
gateways: {default: {port: {port}}}
llm:
  providers:
  - {name: only-responses, provider: {custom: {formats: [{type: responses}]}}, params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: sk-own}}
  models:
  - {name: "claude-*", provider: anthropic, params: {baseUrl: "http://127.0.0.1:BACKEND", apiKey: sk-ant-api}}
  - {name: "gem-*", provider: gemini, params: {baseUrl: "http://127.0.0.1:BACKEND", apiKey: AIza-key}}
  - {name: "mistral-*", provider: mistral, params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: sk-m}}
  - {name: "resp-*", provider: {reference: only-responses}}
  - {name: router, provider: openrouter, params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: sk-or, model: google/gemini-3-pro}}
"""
PATCH = '*** Begin\n+ "caf\u00e9"'
ARGUMENTS = json.dumps({"input": PATCH})
HALF = len(ARGUMENTS) // 2
SAMPLES = bytes(range(200))
CODE = "print(2 + 2)"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with stand_ins(whole(chat())) as [provider]:
        text = CONFIG.replace("BACKEND", str(provider.port))
        with served(tmp_path_factory.mktemp("contents"), text) as running:
            yield Rig(running, provider)


def google(rig: Rig) -> genai.Client:
    return genai.Client(api_key="own", http_options={"base_url": rig.running.url})


def chunks(*deltas: dict[str, Any], reason: str = "stop") -> list[bytes]:
    """Events of chat completions, the last of them with the reason to stop."""
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "real"}
    told = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas] + [{"index": 0, "delta": {}, "finish_reason": reason}]
    return [*(event({**base, "choices": [one]}) for one in told), DONE]


def completion(message: dict[str, Any], reason: str = "stop") -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": reason}
    return whole({"id": "c", "object": "chat.completion", "created": 1, "model": "real", "choices": [choice]})


def claude(blocks: list[dict[str, Any]], reason: str) -> tuple[Answer, Answer]:
    """A whole answer of Messages, and its stream: `input` and `text` of a block come in pieces."""
    usage = {"input_tokens": 3, "output_tokens": 5}
    base = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-real", "stop_sequence": None}
    events = [{"type": "message_start", "message": {**base, "content": [], "stop_reason": None, "usage": usage}}]
    for at, block in enumerate(blocks):
        begun, pieces = block, []
        if "input" in block:
            told = json.dumps(block["input"])
            begun = {**block, "input": {}}
            pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in (told[:HALF], told[HALF:])]
        elif "text" in block:
            begun = {**block, "text": ""}
            pieces = [{"type": "text_delta", "text": block["text"]}]
        events.append({"type": "content_block_start", "index": at, "content_block": begun})
        events += [{"type": "content_block_delta", "index": at, "delta": piece} for piece in pieces]
        events.append({"type": "content_block_stop", "index": at})
    events.append({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 5}})
    events.append({"type": "message_stop"})
    answer = whole({**base, "content": blocks, "stop_reason": reason, "usage": usage})
    return answer, stream(*(event(one, str(one["type"])) for one in events))


def gemini(*parts: dict[str, Any]) -> tuple[Answer, Answer]:
    """A whole answer of Gemini, and a stream with an event for each part."""

    def made(found: list[dict[str, Any]], reason: str | None) -> dict[str, Any]:
        ended = {} if reason is None else {"finishReason": reason}
        return {"responseId": "r", "modelVersion": "gem-real", "candidates": [
            {"index": 0, "content": {"role": "model", "parts": found}, **ended}]}  # fmt: skip

    last = len(parts) - 1
    return whole(made(list(parts), "STOP")), stream(*(event(made([part], "STOP" if at == last else None)) for at, part in enumerate(parts)))


# -- custom tools ------------------------------------------------------------------------------------------------------
CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "patch", "arguments": ARGUMENTS}}
CUSTOM: dict[str, tuple[Answer, Answer]] = {
    "claude": claude([{"type": "tool_use", "id": "c1", "name": "patch", "input": {"input": PATCH}}], "tool_use"),
    "gem": (
        completion({"tool_calls": [{key: CALL[key] for key in ("id", "type", "function")}]}, "tool_calls"),
        stream(*chunks({"tool_calls": [{**CALL, "function": {"name": "patch", "arguments": ARGUMENTS[:HALF]}}]},
                       {"tool_calls": [{"index": 0, "function": {"arguments": ARGUMENTS[HALF:]}}]}, reason="tool_calls")),
    ),
}  # fmt: skip
CUSTOM["mistral"] = CUSTOM["gem"]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("vendor", CUSTOM)
def test_custom_tools_of_responses(rig: Rig, vendor: str, streams: bool) -> None:
    """The call is one of a custom tool, and its result goes back as that of the provider's call."""
    rig.answers(CUSTOM[vendor][streams])
    tool: Any = {"type": "custom", "name": "patch", "description": "Patches."}
    asked: Any = {"model": f"{vendor}-x", "input": [{"role": "user", "content": "go"}], "tools": [tool]}
    client = openai_client(rig.running)
    if streams:
        with client.responses.stream(**asked) as found:
            pieces = [one.delta for one in found if one.type == "response.custom_tool_call_input.delta"]
            final: Any = found.get_final_response()
        assert "".join(pieces) == PATCH
    else:
        final = client.responses.create(**asked)
    [call] = final.output
    assert (call.type, call.name, call.input) == ("custom_tool_call", "patch", PATCH)
    [sent] = rig.provider.last.json["tools"]
    schema = sent["input_schema"] if vendor == "claude" else sent["function"]["parameters"]
    assert schema["properties"]["input"]["type"] == "string"
    output = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "done"}
    rig.answers(CUSTOM[vendor][0])
    client.responses.create(**{**asked, "input": [*asked["input"], call.to_dict(), output]})
    _, turn, result = rig.provider.last.json["messages"]
    if vendor == "claude":
        assert turn["content"][0]["input"] == {"input": PATCH}
        assert result["content"][0]["tool_use_id"] == turn["content"][0]["id"]
    else:
        assert json.loads(turn["tool_calls"][0]["function"]["arguments"]) == {"input": PATCH}
        assert (result["role"], result["tool_call_id"]) == ("tool", turn["tool_calls"][0]["id"])


@pytest.mark.parametrize("streams", [False, True])
def test_custom_tools_of_chat_completions(rig: Rig, streams: bool) -> None:
    rig.answers(CUSTOM["claude"][streams])
    tool: Any = {"type": "custom", "custom": {"name": "patch"}}
    asked: Any = {"model": "claude-x", "messages": [{"role": "user", "content": "go"}], "tools": [tool]}
    client = openai_client(rig.running)
    if streams:
        calls = [call.to_dict() for one in client.chat.completions.create(**asked, stream=True)
                 for choice in one.choices for call in choice.delta.tool_calls or []]  # fmt: skip
        assert calls[0]["type"] == "custom"
        assert "".join(call.get("custom", {}).get("input", "") for call in calls) == PATCH
        return
    [call] = client.chat.completions.create(**asked).choices[0].message.tool_calls or []
    assert call.type == "custom"
    assert (call.custom.name, call.custom.input) == ("patch", PATCH)


# -- sound -------------------------------------------------------------------------------------------------------------
def piece(data: bytes) -> dict[str, Any]:
    return {"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": base64.b64encode(data).decode()}}


@pytest.mark.parametrize("streams", [False, True])
def test_sound_of_gemini_for_chat_completions(rig: Rig, streams: bool) -> None:
    rig.answers(gemini(piece(SAMPLES[:100]), piece(SAMPLES[100:]))[streams])
    audio: Any = {"voice": "Kore", "format": "pcm16" if streams else "wav"}
    asked: Any = {"model": "gem-x", "messages": [{"role": "user", "content": "hi"}], "modalities": ["text", "audio"], "audio": audio}
    client = openai_client(rig.running)
    if streams:
        told = [choice.delta.to_dict() for one in client.chat.completions.create(**asked, stream=True) for choice in one.choices]
        made = b"".join(base64.b64decode(one["audio"]["data"]) for one in told if one.get("audio", {}).get("data"))  # type: ignore[attr-defined,index]
        assert made == SAMPLES
    else:
        found = client.chat.completions.create(**asked).choices[0].message.audio
        assert found is not None
        data = base64.b64decode(found.data)
        assert (data[:4], data[44:]) == (b"RIFF", SAMPLES)
    config = rig.provider.last.json["generationConfig"]
    assert config["responseModalities"] == ["AUDIO"]
    assert config["speechConfig"]["voiceConfig"]["prebuiltVoiceConfig"]["voiceName"] == "Kore"


# -- tools that vendors run --------------------------------------------------------------------------------------------
RAN = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": CODE}},
    {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {
        "type": "code_execution_result", "stdout": "4", "stderr": "", "return_code": 0, "content": []}},
    {"type": "text", "text": "four"},
]  # fmt: skip


@pytest.mark.parametrize("streams", [False, True])
def test_google_s_client_has_claude_run_code(rig: Rig, streams: bool) -> None:
    rig.answers(claude(RAN, "end_turn")[streams])
    config = types.GenerateContentConfig(tools=[types.Tool(code_execution=types.ToolCodeExecution())])
    client = google(rig)
    models = client.models
    asked: Any = {"model": "claude-x", "contents": "2+2?", "config": config}
    answers = list(models.generate_content_stream(**asked)) if streams else [models.generate_content(**asked)]
    parts = [part for one in answers for part in one.candidates[0].content.parts or []]  # type: ignore[index,union-attr]
    codes = [part.executable_code.code for part in parts if part.executable_code]
    printed = [part.code_execution_result.output for part in parts if part.code_execution_result]
    assert (codes, printed, "".join(part.text or "" for part in parts)) == ([CODE], ["4"], "four")
    assert rig.provider.last.json["tools"] == [{"type": "code_execution_20250825", "name": "code_execution"}]
    # Generally available: Anthropic's own client sends it without a field of betas.
    assert "anthropic-beta" not in rig.provider.last.headers


FOUND = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
    {"type": "output_text", "text": "news", "annotations": [
        {"type": "url_citation", "url": "https://a.example/1", "title": "One", "start_index": 0, "end_index": 4}]}]}  # fmt: skip
SEARCHED = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "news"}}
RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "real", "output": [SEARCHED, FOUND],
            "usage": {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}}  # fmt: skip
RESPONSE_EVENTS = [
    {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {**SEARCHED, "status": "in_progress"}},
    {"type": "response.output_item.done", "output_index": 0, "item": SEARCHED},
    {"type": "response.output_item.added", "output_index": 1, "item": {**FOUND, "status": "in_progress", "content": []}},
    {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": "news"},
    {"type": "response.output_text.annotation.added", "item_id": "msg_1", "output_index": 1, "content_index": 0,
     "annotation_index": 0, "annotation": FOUND["content"][0]["annotations"][0]},  # type: ignore[index]
    {"type": "response.output_text.done", "item_id": "msg_1", "output_index": 1, "content_index": 0, "text": "news"},
    {"type": "response.output_item.done", "output_index": 1, "item": FOUND},
    {"type": "response.completed", "response": RESPONSE},
]


@pytest.mark.parametrize("streams", [False, True])
def test_anthropic_s_client_has_openai_search(rig: Rig, streams: bool) -> None:
    rig.answers(stream(*(event(one, one["type"]) for one in RESPONSE_EVENTS)) if streams else whole(RESPONSE))
    tool: Any = {"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["a.example"]}
    asked: Any = {"model": "resp-x", "max_tokens": 99, "messages": [{"role": "user", "content": "news?"}], "tools": [tool]}
    client = anthropic_client(rig.running)
    if streams:
        with client.messages.stream(**asked) as found:
            final: Any = found.get_final_message()
    else:
        final = client.messages.create(**asked)
    kinds = [one.type for one in final.content]
    assert kinds[0] == "server_tool_use"
    assert "tool_use" not in kinds
    assert (final.stop_reason, final.content[-1].text) == ("end_turn", "news")
    assert [one.url for one in final.content[-1].citations] == ["https://a.example/1"]
    assert rig.provider.last.json["tools"] == [{"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}]


# -- reasoning details of OpenRouter -----------------------------------------------------------------------------------
SIGNATURE = "c2lnbmF0dXJl"
DETAIL = {"type": "reasoning.encrypted", "data": SIGNATURE, "id": "call-1", "format": "google-gemini-v1", "index": 0}
CALLS = [{"index": at, "id": f"call-{at + 1}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for at in range(2)]
THOUGHTFUL = {
    "whole": completion({"tool_calls": [{key: one[key] for key in ("id", "type", "function")} for one in CALLS],
                         "reasoning_details": [DETAIL]}, "tool_calls"),
    "streamed": stream(*chunks({"reasoning_details": [DETAIL], "tool_calls": CALLS}, reason="tool_calls")),
    # OpenRouter may tell the details behind the calls that they belong to.
    "late": stream(*chunks({"tool_calls": CALLS}, {"reasoning_details": [DETAIL]}, reason="tool_calls")),
}  # fmt: skip


@pytest.mark.parametrize("way", THOUGHTFUL)
def test_signatures_of_openrouter_s_gemini_for_google_s_client(rig: Rig, way: str) -> None:
    rig.answers(THOUGHTFUL[way])
    declared = types.FunctionDeclaration(name="f", parameters_json_schema={"type": "object", "properties": {}})
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])], automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
    )
    client = google(rig)
    models = client.models
    user = types.Content(role="user", parts=[types.Part(text="go")])
    asked: Any = {"model": "router", "contents": [user], "config": config}
    answers = [models.generate_content(**asked)] if way == "whole" else list(models.generate_content_stream(**asked))
    parts = [part for one in answers for part in (one.candidates[0].content.parts or []) if part.function_call]  # type: ignore[index,union-attr]
    signed = base64.b64decode(SIGNATURE)
    assert [(part.function_call.name, part.thought_signature) for part in parts] == [("f", signed), ("f", None)]  # type: ignore[union-attr]
    results = [types.Part(function_response=types.FunctionResponse(id=part.function_call.id, name="f", response={"ok": True}))  # type: ignore[union-attr]
               for part in parts]  # fmt: skip
    rig.answers(whole(chat()))
    models.generate_content(model="router", config=config, contents=[
        user, types.Content(role="model", parts=parts), types.Content(role="user", parts=results)])  # fmt: skip
    turn = rig.provider.last.json["messages"][1]
    assert turn["reasoning_details"] == [{**DETAIL, "id": turn["tool_calls"][0]["id"]}]
