"""What the gateway does for Amazon's own client beside translating: prompts, edits, limits, failover, ids, logs and traces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from tests.end_to_end.llm_formats import CHAT, CHAT_EVENTS, CONVERSE
from tests.end_to_end.llm_rig import Rig, anthropic_client, openai_client, served, stand_ins
from tests.end_to_end.provider_stand_in import Answer, chat, event, message, message_events, stream, whole
from tests.end_to_end.tracing import Watch

CONFIG = """
gateways: {default: {port: {port}}}
frontendPolicies:
  http: {requestId: generate}
  accessLog: {add: {prompt: llm.prompt, said: llm.completion, tools: "llm.toolCalls.map(call, call.name)"}}
llm:
  providers:
  - {name: anthropic, provider: anthropic, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: k}}
  - {name: openai, provider: openai, params: {baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: k}}
  models:
  - {name: "claude-*", provider: {reference: anthropic}}
  - {name: "gpt-*", provider: {reference: openai}}
  - {name: "aws-*", provider: bedrock, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: k}}
  - {name: edited, provider: {reference: anthropic}, params: {model: claude-x}, overrides: {inferenceConfig: {maxTokens: 17}},
     defaults: {system: [{text: by default}]}}
  - {name: strict, provider: {reference: openai}, params: {model: gpt-x}, unsupportedParameters: refuse}
  virtualModels:
  - {name: either, routing: {failover: {targets: [{model: claude-x, priority: 0}, {model: gpt-x, priority: 1}]}}}
"""
# Routes add prompts, and limit tokens.
ROUTES = """
gateways: {default: {port: {port}}}
routes:
- matches: [{path: {pathPrefix: /model/limited/}}]
  policies: {localRateLimit: [{maxTokens: 30, tokensPerFill: 1, fillInterval: 24h, type: tokens}]}
  backends: [{ai: &claude {name: a, hostOverride: "127.0.0.1:PROVIDER", provider: {anthropic: {}}, policies: {backendAuth: {key: k}}}}]
- matches: [{path: {pathPrefix: /model/claude-x/}}]
  policies: &told {ai: {prompts: {prepend: [{role: system, content: house rules}], append: [{role: user, content: be kind}]}}}
  backends: [{ai: *claude}]
- policies: *told
  backends: [{ai: {name: b, hostOverride: "127.0.0.1:PROVIDER", provider: {bedrock: {region: us-east-1}}, policies: {backendAuth: {key: k}}}}]
"""
TALK: list[Any] = [{"role": "user", "content": [{"text": "hi"}]}]


def logged(scene: Any, model: str) -> str:
    """Return the line of the access log for the only request of a model."""
    name = f"gen_ai.request.model={model} "
    scene.rig.running.wait_log(name)
    [line] = [one for one in scene.rig.running.log().splitlines() if name in one]
    return line


class Scene(NamedTuple):
    rig: Rig
    amazon: Any

    def stream(self, model: str) -> str:
        found = self.amazon.converse_stream(modelId=model, messages=TALK)["stream"]
        return "".join(one["contentBlockDelta"]["delta"]["text"] for one in found if "contentBlockDelta" in one)


def started(folder: Any, text: str) -> Iterator[Scene]:
    with stand_ins(whole(chat())) as [provider], served(folder, text.replace("PROVIDER", str(provider.port))) as running:
        yield Scene(Rig(running, provider), boto3.client(
            "bedrock-runtime", endpoint_url=running.url, region_name="us-east-1", aws_access_key_id="AKIDEXAMPLE",
            aws_secret_access_key="not-a-real-one", config=Config(retries={"total_max_attempts": 1}),
        ))  # fmt: skip


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    yield from started(tmp_path_factory.mktemp("models"), CONFIG)


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    yield from started(tmp_path_factory.mktemp("routes"), ROUTES)


@pytest.mark.parametrize(("model", "answer"), [("claude-x", whole(message(), request_id="req_011")),
                                               ("gpt-x", whole(CHAT, x_request_id="req_011"))], ids=["anthropic", "openai"])  # fmt: skip
def test_the_id_of_a_request_is_the_provider_s(scene: Scene, model: str, answer: Answer) -> None:
    scene.rig.answers(answer)
    told = scene.amazon.converse(modelId=model, messages=TALK)["ResponseMetadata"]
    assert told["RequestId"] == "req_011"
    # The gateway's own.
    assert told["HTTPHeaders"]["x-request-id"] != "req_011"


def test_an_id_of_the_gateway_stands_where_the_provider_has_none(scene: Scene) -> None:
    for ask, answer in ((scene.amazon.converse, whole(message())), (scene.amazon.converse_stream, stream(*message_events("a", "b")))):
        scene.rig.answers(answer)
        found = ask(modelId="claude-x", messages=TALK)
        list(found.get("stream", ()))
        told = found["ResponseMetadata"]
        assert told["RequestId"] == told["HTTPHeaders"]["x-request-id"]
        scene.rig.running.wait_log(f"request.id={told['RequestId']}")
    with pytest.raises(ClientError) as found:
        scene.amazon.converse(modelId="nobody", messages=TALK)
    told = found.value.response["ResponseMetadata"]
    assert told["RequestId"] == told["HTTPHeaders"]["x-request-id"]


def test_other_vendors_clients_find_ids_too(scene: Scene) -> None:
    scene.rig.answers(whole(CHAT, x_request_id="req_012"))
    said = anthropic_client(scene.rig.running).messages.create(model="gpt-x", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
    assert said._request_id == "req_012"
    scene.rig.answers(whole(message(), request_id="req_013"))
    found = openai_client(scene.rig.running).chat.completions.create(model="claude-x", messages=[{"role": "user", "content": "hi"}])
    # `x-request-id` is the gateway's, where it gives ids.
    assert found._request_id not in (None, "req_013")


def test_what_was_said_is_in_the_log(scene: Scene) -> None:
    scene.rig.answers(whole(message()))
    scene.amazon.converse(modelId="claude-told", messages=TALK, system=[{"text": "be brief"}])
    line = logged(scene, "claude-told")
    assert "be brief" in line
    assert "hello" in line
    call = {**message(), "stop_reason": "tool_use", "content": [{"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {}}]}
    scene.rig.answers(whole(call))
    scene.amazon.converse(modelId="claude-calls", messages=TALK)
    assert "look_up" in logged(scene, "claude-calls")


def test_bodies_are_edited_in_the_client_s_format(scene: Scene) -> None:
    scene.rig.answers(whole(message()))
    scene.amazon.converse(modelId="edited", messages=TALK, inferenceConfig={"maxTokens": 5})
    sent = scene.rig.provider.last.json
    assert (sent["model"], sent["max_tokens"]) == ("claude-x", 17)
    assert "by default" in json.dumps(sent["system"])


def test_what_has_no_place_is_refused_where_that_is_configured(scene: Scene) -> None:
    before = len(scene.rig.provider.seen)
    with pytest.raises(ClientError, match=r"ValidationException.*does not support guardrailConfig"):
        scene.amazon.converse(modelId="strict", messages=TALK, guardrailConfig={"guardrailIdentifier": "g-1", "guardrailVersion": "1"})
    assert len(scene.rig.provider.seen) == before
    scene.rig.answers(whole(CHAT))
    # A hint is no reason to refuse.
    assert scene.amazon.converse(modelId="strict", messages=TALK, requestMetadata={"team": "a"})["stopReason"] == "end_turn"


BUSY = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}


@pytest.mark.parametrize("first", [stream(event(BUSY, "error")), whole(BUSY, 529)], ids=["in a stream", "whole"])
def test_another_vendor_is_asked_when_one_fails(scene: Scene, first: Answer) -> None:
    seen = len(scene.rig.provider.seen)
    scene.rig.provider.answers[:] = [first, stream(*CHAT_EVENTS)]
    assert scene.stream("either") == "hello"
    assert [one.path for one in scene.rig.provider.seen[seen:]] == ["/v1/messages", "/v1/chat/completions"]


@pytest.mark.parametrize("streams", [False, True])
def test_bodies_of_one_model_are_refused_streamed_or_not(scene: Scene, streams: bool) -> None:
    ask = scene.amazon.invoke_model_with_response_stream if streams else scene.amazon.invoke_model
    before = len(scene.rig.provider.seen)
    with pytest.raises(ClientError, match=r"ValidationException.*Converse is translated"):
        ask(modelId="claude-x", body=json.dumps({"anthropic_version": "bedrock-2023-05-31", "messages": []}))
    assert len(scene.rig.provider.seen) == before


def test_tokens_are_counted_or_estimated(scene: Scene) -> None:
    asked = {"messages": [{"role": "user", "content": [{"text": "one two three"}]}]}
    scene.rig.answers(whole({"inputTokens": 43}))
    assert scene.amazon.count_tokens(modelId="aws-x", input={"converse": asked})["inputTokens"] == 43
    assert scene.rig.provider.last.path == "/model/aws-x/count-tokens"
    before = len(scene.rig.provider.seen)
    for model in ("gpt-x", "claude-x"):
        assert scene.amazon.count_tokens(modelId=model, input={"converse": asked})["inputTokens"] == 3 + 4 + 3
    more = {**asked, "system": [{"text": "four"}]}
    assert scene.amazon.count_tokens(modelId="gpt-x", input={"converse": more})["inputTokens"] == 3 + 4 + 3 + 4 + 1
    with pytest.raises(ClientError, match=r"ValidationException.*Converse is translated"):
        scene.amazon.count_tokens(modelId="gpt-x", input={"invokeModel": {"body": b"{}"}})
    for odd in (b"{}", b'{"input":7}', b'{"input":{"converse":null}}', b"nope"):
        answer = scene.rig.post(odd, "/model/gpt-x/count-tokens")
        assert answer.status_code in (200, 400)
        assert "x-amzn-errortype" in answer.headers or answer.json() == {"inputTokens": 0}
    assert len(scene.rig.provider.seen) == before


def test_a_trace_tells_of_the_attempt(scene: Scene) -> None:
    scene.rig.answers(whole(message()))
    watch = Watch(scene.rig.running, 'request.path.contains("claude-traced")')
    scene.amazon.converse(modelId="claude-traced", messages=TALK)
    told = json.dumps(watch.wait())
    assert "llm_attempt" in told
    assert '"converse"' in told
    assert '"messages"' in told


@pytest.mark.parametrize(("model", "answer"), [("claude-x", message()), ("aws-x", CONVERSE)], ids=["anthropic", "bedrock"])
@pytest.mark.parametrize("own", [True, False], ids=["own", "none"])
def test_prompts_are_added(routes: Scene, model: str, answer: Any, own: bool) -> None:
    routes.rig.answers(whole(answer))
    more = {"system": [{"text": "be brief"}]} if own else {}
    routes.amazon.converse(modelId=model, messages=TALK, **more)
    sent = routes.rig.provider.last.json
    assert [one["text"] for one in sent["system"]] == ["house rules", *(["be brief"] if own else [])]
    assert [block["text"] for turn in sent["messages"] for block in turn["content"]] == ["hi", "be kind"]


def test_a_limit_of_tokens_is_amazon_s_throttling(routes: Scene) -> None:
    routes.rig.answers(whole(message()))
    # 105 and 7 tokens are more than there are.
    routes.amazon.converse(modelId="limited", messages=TALK)
    seen = len(routes.rig.provider.seen)
    for ask in (routes.amazon.converse, routes.amazon.converse_stream):
        with pytest.raises(ClientError) as found:
            ask(modelId="limited", messages=TALK)
        assert found.value.response["Error"]["Code"] == "ThrottlingException"
        assert int(found.value.response["ResponseMetadata"]["HTTPHeaders"]["retry-after"]) > 0
    assert len(routes.rig.provider.seen) == seen


def test_ids_of_bedrock_are_found_by_other_vendors_clients(routes: Scene) -> None:
    # The gateway gives none here.
    routes.rig.answers(whole(CONVERSE, x_amzn_requestid="req_014"))
    turns: Any = [{"role": "user", "content": "hi"}]
    assert openai_client(routes.rig.running).chat.completions.create(model="aws-x", messages=turns)._request_id == "req_014"
    said = anthropic_client(routes.rig.running).messages.create(model="aws-x", max_tokens=9, messages=turns)
    assert said._request_id == "req_014"
    assert routes.amazon.converse(modelId="aws-x", messages=TALK)["ResponseMetadata"]["RequestId"] == "req_014"
