"""Amazon's own client, which speaks Converse, at every provider: answers, streams, tools, thoughts, pictures, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.eventstream import EventStreamError
from botocore.exceptions import ClientError
from llm_sdk_shapes import shape_faults
from tests.end_to_end.llm_formats import CHAT, CHAT_EVENTS, CONVERSE, RESPONSE, RESPONSE_EVENTS, frame
from tests.end_to_end.llm_rig import Rig, served, stand_ins
from tests.end_to_end.llm_translated_rig import GEMINI
from tests.end_to_end.provider_stand_in import Answer, chat, event, message, message_events, stream, whole

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  providers:
  - {name: only-responses, provider: {custom: {formats: [{type: responses}]}},
     params: {baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: sk-own}}
  models:
  - {name: "gpt-*", provider: openai, params: {baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: sk-openai}}
  - {name: "claude-*", provider: anthropic, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: sk-ant-api}}
  - {name: "gem-*", provider: gemini, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: AIza-key}}
  - {name: "resp-*", provider: {reference: only-responses}}
  - {name: "aws-*", provider: bedrock, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: bedrock-key}}
  - {name: us.anthropic.claude-sonnet-4-5-v1:0, provider: bedrock,
     params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: bedrock-key}}
  - {name: "deploy-*", provider: azure, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: azure-key,
     azureResourceName: r, azureResourceType: openAI}}
  - {name: watched-claude, provider: anthropic, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: k}, guardrails: &guards {
       request: [{regex: {rules: [{pattern: secret}], action: reject}}],
       response: [{regex: {rules: [{pattern: lo}], action: mask}}], streaming: {masks: Apply}}}
  - {name: watched-aws, provider: bedrock, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: k}, guardrails: *guards}
  - {name: slow, provider: anthropic, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: k}, streamTimeouts: {stall: 1s}}
"""
AWS = "application/vnd.amazon.eventstream"
GEMINI_EVENTS = tuple(
    event({**GEMINI, "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0, **end}]})
    for text, end in (("hel", {}), ("lo", {"finishReason": "STOP"}))
)
FRAMES = (
    frame("messageStart", {"role": "assistant"}),
    frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hel"}}),
    frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "lo"}}),
    frame("contentBlockStop", {"contentBlockIndex": 0}),
    frame("messageStop", {"stopReason": "end_turn"}),
    frame("metadata", {"usage": CONVERSE["usage"], "metrics": {"latencyMs": 1}}),
)
SPOKEN = (
    *RESPONSE_EVENTS[:2],
    event({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "lo"},
          "response.output_text.delta"),
    RESPONSE_EVENTS[2],
)  # fmt: skip
ARGUMENTS = {"at": "sky"}
CALL = json.dumps(ARGUMENTS)
CALLED = whole({**CHAT, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
    "role": "assistant", "content": None,
    "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": CALL}}]}}]})  # fmt: skip
# Model, path and format of the provider's request, whole and streamed answer, a call of a tool, tokens of input and output.
WAYS: dict[str, tuple[str, str, str, Answer, Answer, Answer, tuple[int, int]]] = {
    "openai": ("gpt-x", "/v1/chat/completions", "completions", whole(CHAT), stream(*CHAT_EVENTS), CALLED, (110, 70)),
    "azure": ("deploy-x", "/openai/v1/chat/completions", "completions", whole(CHAT), stream(*CHAT_EVENTS), CALLED, (110, 70)),
    "anthropic": (
        "claude-x", "/v1/messages", "messages", whole(message()), stream(*message_events("hel", "lo")),
        whole({**message(), "stop_reason": "tool_use",
               "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": ARGUMENTS}]}), (105, 7),
    ),
    "gemini": (
        "gem-x", "/v1beta/models/gem-x:", "gemini", whole(GEMINI), stream(*GEMINI_EVENTS),
        whole({**GEMINI, "candidates": [{"index": 0, "finishReason": "STOP", "content": {
            "role": "model", "parts": [{"functionCall": {"name": "look", "args": ARGUMENTS}}]}}]}), (3, 5),
    ),
    "responses": (
        "resp-x", "/v1/responses", "responses", whole(RESPONSE), stream(*SPOKEN),
        whole({**RESPONSE, "output": [{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look",
                                       "arguments": CALL, "status": "completed"}]}), (30, 12),
    ),
    "bedrock": (
        "aws-x", "/model/aws-x/converse", "converse", whole(CONVERSE), stream(*FRAMES, kind=AWS),
        whole({**CONVERSE, "stopReason": "tool_use", "output": {"message": {"role": "assistant", "content": [
            {"toolUse": {"toolUseId": "t1", "name": "look", "input": ARGUMENTS}}]}}}), (31, 5),
    ),
}  # fmt: skip
EVERY_WAY = pytest.mark.parametrize("way", WAYS)
TALK: list[Any] = [{"role": "user", "content": [{"text": "hi"}]}]
TOOLS: Any = {"tools": [{"toolSpec": {"name": "look", "description": "looks", "inputSchema": {"json": {
    "type": "object", "properties": {"at": {"type": "string"}}}}}}], "toolChoice": {"auto": {}}}  # fmt: skip


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with stand_ins(whole(chat())) as [provider]:
        text = CONFIG.replace("PROVIDER", str(provider.port))
        with served(tmp_path_factory.mktemp("converse"), text) as running:
            yield Rig(running, provider)


@pytest.fixture(scope="module")
def amazon(rig: Rig) -> Any:
    return boto3.client(
        "bedrock-runtime", endpoint_url=rig.running.url, region_name="us-east-1", aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="not-a-real-one", aws_session_token="session-of-the-client",
        config=Config(retries={"total_max_attempts": 1}),
    )  # fmt: skip


def pieces(answer: Any) -> Iterator[str]:
    """Yield the texts of a stream."""
    for one in answer["stream"]:
        if "contentBlockDelta" in one:
            yield one["contentBlockDelta"]["delta"].get("text", "")


@EVERY_WAY
def test_answers(rig: Rig, amazon: Any, way: str) -> None:
    model, path, form, answer, _, _, (given, made) = WAYS[way]
    rig.answers(answer)
    reply = amazon.converse(
        modelId=model, messages=TALK, system=[{"text": "be brief"}],
        inferenceConfig={"maxTokens": 99, "temperature": 0.5, "stopSequences": [] if way == "responses" else ["END"]},
    )  # fmt: skip
    assert reply["output"]["message"] == {"role": "assistant", "content": [{"text": "hello"}]}
    assert reply["stopReason"] == "end_turn"
    usage = reply["usage"]
    assert usage["inputTokens"] + usage.get("cacheReadInputTokens", 0) + usage.get("cacheWriteInputTokens", 0) == given
    assert usage["outputTokens"] == made
    assert usage["totalTokens"] >= usage["inputTokens"] + made
    seen = rig.provider.last
    assert seen.path.startswith(path)
    assert shape_faults(form, seen.json) == []
    told = json.dumps(seen.json)
    assert all(word in told for word in ("be brief", "99", "hi"))
    # The newest Claude refuses sampling parameters.
    assert ("0.5" in told) == (way != "anthropic")
    # Neither the client's signature nor what belongs to it.
    sent = json.dumps({name.lower(): value for name, value in seen.headers.items()})
    assert not any(word in sent for word in ("AWS4-HMAC", "AKIDEXAMPLE", "session-of-the-client", "x-amz-", "amz-sdk"))
    rig.running.wait_log(f"gen_ai.request.model={model}")
    rig.running.wait_log(f"gen_ai.usage.output_tokens={made}")


@EVERY_WAY
def test_streams(rig: Rig, amazon: Any, way: str) -> None:
    model, path, form, _, answer, _, (_, made) = WAYS[way]
    rig.answers(answer)
    reply = amazon.converse_stream(modelId=model, messages=TALK)
    events = list(reply["stream"])
    assert "".join(pieces({"stream": events})) == "hello"
    names = [next(iter(one)) for one in events]
    assert names[0] == "messageStart"
    assert names[-3:] == ["contentBlockStop", "messageStop", "metadata"]
    assert events[-2]["messageStop"]["stopReason"] == "end_turn"
    assert events[-1]["metadata"]["usage"]["outputTokens"] == made
    assert events[-1]["metadata"]["metrics"]["latencyMs"] >= 0
    assert rig.provider.last.path.startswith(path)
    assert shape_faults(form, rig.provider.last.json) == []


@EVERY_WAY
def test_tools_and_pictures(rig: Rig, amazon: Any, way: str) -> None:
    model, _, form, answer, _, called, _ = WAYS[way]
    rig.answers(called)
    turns: list[Any] = [{"role": "user", "content": [
        {"text": "look"}, {"image": {"format": "png", "source": {"bytes": b"\xfb\xff"}}},
        {"document": {"format": "txt", "name": "notes", "source": {"bytes": b"the notes"}}},
    ]}]  # fmt: skip
    reply = amazon.converse(modelId=model, messages=turns, toolConfig=TOOLS)
    assert reply["stopReason"] == "tool_use"
    [block] = reply["output"]["message"]["content"]
    call = block["toolUse"]
    assert (call["name"], call["input"]) == ("look", ARGUMENTS)
    told = json.dumps(rig.provider.last.json)
    assert "+/8=" in told
    assert "the notes" in told or "dGhlIG5vdGVz" in told
    rig.answers(answer)
    turns += [reply["output"]["message"], {"role": "user", "content": [{"toolResult": {
        "toolUseId": call["toolUseId"], "content": [{"text": "blue"}, {"json": {"shade": 7}}], "status": "success"}}]}]
    again = amazon.converse(modelId=model, messages=turns, toolConfig=TOOLS)
    assert again["output"]["message"]["content"] == [{"text": "hello"}]
    assert shape_faults(form, rig.provider.last.json) == []
    told = json.dumps(rig.provider.last.json)
    assert "blue" in told
    assert "shade" in told


def test_thoughts_come_and_go(rig: Rig, amazon: Any) -> None:
    said = message()
    said["content"] = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln+/=="},
        {"type": "redacted_thinking", "data": "aGlkZGVu"},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": ARGUMENTS},
    ]
    said["stop_reason"] = "tool_use"
    rig.answers(whole(said))
    asked: Any = {"toolConfig": TOOLS, "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}
    reply = amazon.converse(modelId="claude-sonnet-4-5", messages=TALK, **asked)
    assert rig.provider.last.json["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    blocks = reply["output"]["message"]["content"]
    assert blocks[0] == {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln+/=="}}}
    assert blocks[1] == {"reasoningContent": {"redactedContent": b"hidden"}}
    result = {"role": "user", "content": [{"toolResult": {"toolUseId": "toolu_1", "content": [{"text": "blue"}]}}]}
    rig.answers(whole(message()))
    amazon.converse(modelId="claude-sonnet-4-5", messages=[*TALK, reply["output"]["message"], result], **asked)
    assert rig.provider.last.json["messages"][1]["content"] == said["content"]
    # At another vendor they are left out.
    rig.answers(whole(CHAT))
    amazon.converse(modelId="gpt-x", messages=[*TALK, reply["output"]["message"], result], toolConfig=TOOLS)
    assert b"c2ln" not in rig.provider.last.body
    assert b"aGlkZGVu" not in rig.provider.last.body


def test_streams_of_thoughts_and_calls(rig: Rig, amazon: Any) -> None:
    def piece(index: int, kind: str, **more: Any) -> bytes:
        return event({"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}, "content_block_delta")

    begin, *_, before_end, end = message_events("x")
    events = [begin]
    for index, block in enumerate(({"type": "thinking", "thinking": "", "signature": ""},
                                   {"type": "redacted_thinking", "data": "aGlkZGVu"},
                                   {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}})):  # fmt: skip
        events.append(event({"type": "content_block_start", "index": index, "content_block": block}, "content_block_start"))
        if index == 0:
            events += [piece(0, "thinking_delta", thinking="hm"), piece(0, "signature_delta", signature="c2ln")]
        elif index == 2:
            events += [piece(2, "input_json_delta", partial_json='{"at":'), piece(2, "input_json_delta", partial_json='"sky"}')]
        events.append(event({"type": "content_block_stop", "index": index}, "content_block_stop"))
    rig.answers(stream(*events, before_end.replace(b"end_turn", b"tool_use"), end))
    found = list(amazon.converse_stream(modelId="claude-x", messages=TALK, toolConfig=TOOLS)["stream"])
    deltas = [one["contentBlockDelta"] for one in found if "contentBlockDelta" in one]
    assert [one["delta"] for one in deltas if one["contentBlockIndex"] == 0] == [
        {"reasoningContent": {"text": "hm"}}, {"reasoningContent": {"signature": "c2ln"}}]  # fmt: skip
    assert [one["delta"] for one in deltas if one["contentBlockIndex"] == 1] == [
        {"reasoningContent": {"redactedContent": b"hidden"}}]  # fmt: skip
    assert json.loads("".join(one["delta"]["toolUse"]["input"] for one in deltas if one["contentBlockIndex"] == 2)) == ARGUMENTS
    [start] = [one["contentBlockStart"] for one in found if "contentBlockStart" in one]
    assert start == {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "toolu_1", "name": "look"}}}
    assert [one["messageStop"]["stopReason"] for one in found if "messageStop" in one] == ["tool_use"]


ERRORS = [
    (429, {"type": "error", "error": {"type": "rate_limit_error", "message": "too many"}}, "ThrottlingException"),
    (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}}, "ValidationException"),
    (401, {"type": "error", "error": {"type": "authentication_error", "message": "who"}}, "UnrecognizedClientException"),
    (404, {"type": "error", "error": {"type": "not_found_error", "message": "no"}}, "ResourceNotFoundException"),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, "ServiceUnavailableException"),
]


@pytest.mark.parametrize(("status", "body", "code"), ERRORS, ids=[code for _, _, code in ERRORS])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_errors_are_amazon_s(rig: Rig, amazon: Any, status: int, body: Any, code: str, streams: bool) -> None:
    rig.answers(whole(body, status))
    ask = amazon.converse_stream if streams else amazon.converse
    with pytest.raises(ClientError) as found:
        ask(modelId="claude-x", messages=TALK)
    assert found.value.response["Error"] == {"Code": code, "Message": body["error"]["message"]}
    assert found.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


@pytest.mark.parametrize("way", ["anthropic", "bedrock"])
def test_guards_read_requests_answers_and_streams(rig: Rig, amazon: Any, way: str) -> None:
    model = {"anthropic": "watched-claude", "bedrock": "watched-aws"}[way]
    _, _, _, answer, streamed, _, _ = WAYS[way]
    before = len(rig.provider.seen)
    for turns in ([{"role": "user", "content": [{"text": "the secret"}]}],
                  [{"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "x"}]}}, {"text": "secret"}]}]):
        with pytest.raises(ClientError) as found:
            amazon.converse(modelId=model, messages=turns)
        assert found.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
        assert found.value.response["Error"]["Code"] == "AccessDeniedException"
    assert len(rig.provider.seen) == before
    rig.answers(answer)
    [block] = amazon.converse(modelId=model, messages=TALK)["output"]["message"]["content"]
    assert block == {"text": "hel<masked>"}
    rig.answers(streamed)
    assert "".join(pieces(amazon.converse_stream(modelId=model, messages=TALK))) == "hel<masked>"
    with pytest.raises(ClientError):
        amazon.invoke_model(modelId=model, body="{}")


def test_what_cannot_be_said_is_refused_or_told(rig: Rig, amazon: Any) -> None:
    before = len(rig.provider.seen)
    video: Any = [{"role": "user", "content": [{"video": {"format": "mp4", "source": {"bytes": b"x"}}}]}]
    stored: Any = [{"role": "user", "content": [{"image": {"format": "png", "source": {"s3Location": {"uri": "s3://a/b"}}}}]}]
    for turns in (video, stored):
        with pytest.raises(ClientError, match="ValidationException"):
            amazon.converse(modelId="gpt-x", messages=turns)
    assert len(rig.provider.seen) == before
    rig.answers(whole(CHAT))
    reply = amazon.converse(
        modelId="gpt-x", messages=TALK, additionalModelRequestFields={"top_k": 5, "odd": 1}, requestMetadata={"team": "a"},
        guardrailConfig={"guardrailIdentifier": "gr-1", "guardrailVersion": "1"},
    )  # fmt: skip
    told = reply["ResponseMetadata"]["HTTPHeaders"]["x-gw-unsupported-parameters"].split(", ")
    assert {"guardrailConfig", "requestMetadata", "additionalModelRequestFields.top_k", "additionalModelRequestFields.odd"} == set(told)


def test_a_stream_that_fails_at_once_is_an_error(rig: Rig, amazon: Any) -> None:
    rig.answers(stream(event({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, "error")))
    with pytest.raises(ClientError) as found:
        amazon.converse_stream(modelId="claude-x", messages=TALK)
    assert found.value.response["Error"] == {"Code": "ServiceUnavailableException", "Message": "busy"}


@pytest.mark.parametrize("end", ["cut", "stall", "whole"])
def test_a_stream_that_breaks_is_an_exception_behind_its_words(rig: Rig, amazon: Any, end: str) -> None:
    rig.answers(stream(*message_events("hel", "lo")[:4], end=end))
    answer = amazon.converse_stream(modelId="slow", messages=TALK)
    said = pieces(answer)
    assert next(said) == "hel"
    with pytest.raises(EventStreamError, match="modelStreamErrorException"):
        list(said)


def test_an_error_within_a_stream_is_the_exception_that_it_means(rig: Rig, amazon: Any) -> None:
    failure = event({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}, "error")
    rig.answers(stream(*message_events("hel", "lo")[:4], failure))
    with pytest.raises(EventStreamError, match=r"throttlingException.*slow down"):
        list(amazon.converse_stream(modelId="claude-x", messages=TALK)["stream"])


def test_bodies_of_one_model_are_refused_where_nobody_reads_them(rig: Rig, amazon: Any) -> None:
    before = len(rig.provider.seen)
    with pytest.raises(ClientError) as found:
        amazon.invoke_model(modelId="gpt-x", body=json.dumps({"anthropic_version": "bedrock-2023-05-31", "messages": []}))
    assert found.value.response["Error"]["Code"] == "ValidationException"
    assert "Converse" in found.value.response["Error"]["Message"]
    assert len(rig.provider.seen) == before


def test_turns_of_other_vendors_are_made_fit_for_bedrock(rig: Rig, amazon: Any) -> None:
    turns: list[Any] = [
        *TALK,
        {"role": "assistant", "content": [
            {"reasoningContent": {"reasoningText": {"text": "unsigned"}}},
            {"toolUse": {"toolUseId": "call_1__thought__c2lnbmF0dXJl", "name": "look", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "call_1__thought__c2lnbmF0dXJl", "content": [{"text": "blue"}]}}]},
    ]  # fmt: skip
    rig.answers(whole(CONVERSE))
    amazon.converse(modelId="us.anthropic.claude-sonnet-4-5-v1:0", messages=turns, toolConfig=TOOLS)
    _, said, result = rig.provider.last.json["messages"]
    assert said["content"] == [{"toolUse": {"toolUseId": "call_1", "name": "look", "input": {}}}]
    assert result["content"][0]["toolResult"]["toolUseId"] == "call_1"
    # Thoughts of other models need no signature.
    amazon.converse(modelId="aws-x", messages=turns, toolConfig=TOOLS)
    assert "unsigned" in json.dumps(rig.provider.last.json)
    amazon.converse(modelId="aws-x", messages=TALK)
    assert rig.provider.last.json == {"messages": TALK}
