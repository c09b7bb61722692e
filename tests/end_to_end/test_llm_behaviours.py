"""Single behaviours of LLM routes that clients and providers can see (ci/llm-checklist.md): one gateway for the file."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end import llm_rig
from tests.end_to_end.llm_rig import rigged
from tests.end_to_end.provider_stand_in import DONE, Asked, chat, chunk, event, message, response, stream, whole

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  gateways: [default]
  models:
  - {name: gpt-capped, provider: openai, overrides: {max_tokens: 100},
     params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: k}}
  - {name: gpt-usual, provider: openai, defaults: {max_tokens: 100, stream_options: {include_usage: false}},
     params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: k}}
  - {name: "gpt-*", provider: openai, params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: k}}
  - {name: "claude-*", provider: anthropic, params: {baseUrl: "http://127.0.0.1:BACKEND", apiKey: k},
     finalTransformation: {top_k: "llmRequest.max_tokens + 1", temperature: "null"}}
  - {name: "gem-*", provider: gemini, params: {baseUrl: "http://127.0.0.1:BACKEND", apiKey: k}}
  - {name: "moved-*", provider: gemini, params: {baseUrl: "http://127.0.0.1:BACKEND", apiKey: k},
     transformation: {model: '"to/" + llmRequest.model'}}
  - {name: "aws-*", provider: bedrock, params: {baseUrl: "http://127.0.0.1:BACKEND", apiKey: k, model: "own:1"}}
  - {name: "map-*", provider: bedrock, params: {baseUrl: "http://127.0.0.1:BACKEND", apiKey: k},
     transformation: {model: 'llmRequest.model.stripPrefix("map-")'}}
  - {name: listening, provider: openai, params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: k}}
  - {name: cached-*, provider: bedrock, params: {baseUrl: "http://127.0.0.1:BACKEND", apiKey: k},
     transformation: {model: '"anthropic.claude-3"'}, promptCaching: {minTokens: 1, cacheTools: true}}
routes:
- name: pinned
  gateways: [default]
  hostnames: [pinned.test]
  backends:
  - ai:
      name: pinned
      provider: {openAI: {model: the-pinned}}
      hostOverride: "127.0.0.1:BACKEND"
      policies: {ai: {transformations: {metadata: '{"asked": llmRequest.model}'}}}
- name: supplied
  gateways: [default]
  hostnames: [supplied.test]
  backends:
  - ai:
      name: supplied
      provider: {openAI: {}}
      hostOverride: "127.0.0.1:BACKEND"
      policies: {ai: {transformations: {model: 'has(llmRequest.model) ? llmRequest.model : "from-" + llmRequest.user'}}}
- name: aliased
  gateways: [default]
  hostnames: [aliased.test]
  backends:
  - ai: {name: aliased, provider: {anthropic: {}}, hostOverride: "127.0.0.1:BACKEND"}
    policies: {ai: {modelAliases: {fast: faster, faster: never, "claude-*": one, "claude-3*": two, exact: gpt-exact}}}
- name: fixed
  gateways: [default]
  hostnames: [fixed.test]
  backends:
  - ai: {name: fixed, provider: {openAI: {}}, hostOverride: "127.0.0.1:BACKEND", pathOverride: /there}
- name: gpt
  gateways: [default]
  hostnames: [gpt.test]
  backends:
  - ai: {name: gpt, provider: {openAI: {}}, hostOverride: "127.0.0.1:BACKEND"}
    policies: {ai: {modelAliases: {small: gpt-small}}}
- name: prefixed
  gateways: [default]
  hostnames: [prefixed.test]
  backends:
  - ai: {name: prefixed, provider: {openAI: {}}, hostOverride: "127.0.0.1:BACKEND", pathPrefix: /api/}
- name: custom
  gateways: [default]
  hostnames: [custom.test]
  backends:
  - ai:
      name: custom
      provider: {custom: {formats: [{type: responses, path: /own/responses}, {type: generateContent}], providerOverride: mine}}
      hostOverride: "127.0.0.1:BACKEND"
"""
TURNS: list[Any] = [{"role": "user", "content": "hi"}]
CHAT = "/v1/chat/completions"
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "hello"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8},
}


class Rig(llm_rig.Rig):
    def send(self, path: str, body: Any, host: str = "a", **headers: str) -> httpx.Response:
        return self.post(body, path, host=host, **headers)

    def seen(self, path: str, body: Any, host: str = "a", **headers: str) -> Asked:
        """What the provider was asked; the answer must be good."""
        before = len(self.provider.seen)
        answer = self.send(path, body, host, **headers)
        assert answer.status_code == 200, answer.text
        assert len(self.provider.seen) == before + 1
        return self.provider.last


@pytest.fixture(scope="module")
def module_rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with rigged(tmp_path_factory.mktemp("behaviours"), CONFIG) as (running, provider):
        yield Rig(running, provider)


@pytest.fixture
def rig(module_rig: Rig) -> Rig:
    module_rig.answers(whole(chat()))
    return module_rig


# -- bodies that are read for their model --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("encoding", "raw"),
    [
        ("gzip", gzip.compress(b'{"model": "gpt-1", "messages": []}', mtime=0)),
        ("deflate", zlib.compress(b'{"model": "gpt-1", "messages": []}')),
        ("identity", b'{"model": "gpt-1", "messages": []}'),
    ],
)
def test_encoded_bodies_are_read(rig: Rig, encoding: str, raw: bytes) -> None:
    assert rig.seen(CHAT, raw, content_encoding=encoding).body == raw, "nobody edits it"


@pytest.mark.http1(reason="httpx does not read an answer that comes before it has sent its body")
def test_a_broken_encoding_and_a_body_that_is_too_large(rig: Rig) -> None:
    broken = rig.send(CHAT, b"no gzip", content_encoding="gzip")
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, "request_body_decode_failed")
    long = b'{"model": "gpt-1", "x": "' + b"x" * (2 << 20) + b'"}'
    for body, headers in ((long, {}), (gzip.compress(long), {"content_encoding": "gzip"})):
        refused = rig.send(CHAT, body, **headers)
        assert (refused.status_code, refused.headers["content-type"]) == (413, "application/json")
        assert refused.json()["error"]["code"] == "request_body_too_large"
    pieces = httpx.post(rig.running.url + CHAT, content=iter([long[: 1 << 20], long[1 << 20 :]]), timeout=30)
    assert (pieces.status_code, pieces.json()["error"]["code"]) == (413, "request_body_too_large")


@pytest.mark.parametrize(
    "headers",
    [{"connection": "upgrade", "upgrade": "websocket"}, {"content_type": "multipart/form-data; boundary=x"}, {}],
)
def test_what_a_head_says_of_a_body_does_not_hide_its_model(rig: Rig, headers: dict[str, str]) -> None:
    assert rig.seen(f"{CHAT}?model=other", {"model": "mine"}, "pinned.test", **headers).json["model"] == "the-pinned"
    refused = rig.send(f"{CHAT}?model=gpt-1", {"model": "unknown"}, **headers)
    assert refused.json()["error"]["code"] == "model_not_found"


def test_a_path_does_not_name_the_model_of_a_body_that_does(rig: Rig) -> None:
    hidden = {"model": "unknown", "messages": TURNS, "max_tokens": 1}
    for path in (
        "/model/gpt-1/v1/chat/completions", "/model/gpt-1/%2e%2e%2fv1%2fchat%2fcompletions",
        "/v1beta/models/gpt-1:x%2fv1%2fmessages",
    ):  # fmt: skip
        refused = rig.send(path, hidden)
        told = refused.json()["error"]
        # The last one is a path of Messages.
        assert (refused.status_code, told.get("code", told["type"])) == (
            404, "not_found_error" if path.endswith("messages") else "model_not_found",
        )  # fmt: skip
    # The first one is a path of Bedrock's, whose clients have errors of another shape.
    refused = rig.send("/model/aws-1/..%2f../converse", {"messages": []})
    assert (refused.status_code, set(refused.json()), refused.headers["x-amzn-errortype"]) == (
        400, {"message"}, "ValidationException",
    )  # fmt: skip
    assert rig.send("/model/aws-1/a/b", {"messages": []}).json()["error"]["code"] == "missing_model"
    # Where the path is not sent on, the body gets what it said.
    seen = rig.seen("/model/one/other", {"model": "other"}, "fixed.test")
    assert (seen.path, seen.json) == ("/there", {"model": "one"})


@pytest.mark.parametrize("host", ["a", "pinned.test"])
def test_only_realtime_conversations_are_upgraded(rig: Rig, host: str) -> None:
    asked = len(rig.provider.seen)
    headers = {"host": host, "connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13",
               "sec-websocket-key": "MDEyMzQ1Njc4OWFiY2RlZg=="}  # fmt: skip
    refused = httpx.get(f"{rig.running.url}/v1/responses?model=gpt-1", headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_request_body")
    assert len(rig.provider.seen) == asked


def test_a_form_that_names_two_models_is_refused(rig: Rig) -> None:
    part = b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\n%s\r\n'
    body = part % b"gpt-1" + part % b"gpt-2" + b"--b--\r\n"
    refused = rig.send("/v1/audio/transcriptions", body, content_type="multipart/form-data; boundary=b")
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith("the request names the model twice: ")


def test_other_spellings_of_a_path_are_translated_and_guarded_like_it(rig: Rig) -> None:
    rig.answers(whole(message()))
    body = {"model": "claude-1", "messages": TURNS}
    for path in ("/v1/chat/completions/", "/v1//chat/completions", "/v1/chat/%63ompletions"):
        assert rig.seen(path, body).path == "/v1/messages"


def test_a_form_is_routed_by_its_field_and_passes_as_it_is(rig: Rig) -> None:
    body = (
        b'--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n\x00\xff model\r\n'
        b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nlistening\r\n--b--\r\n'
    )
    seen = rig.seen("/v1/audio/transcriptions?x=1", body, content_type="multipart/form-data; boundary=b")
    assert (seen.path, seen.body) == ("/v1/audio/transcriptions?x=1", body)


@pytest.mark.parametrize("body", [b"not json", b'{"model": "gpt-9", "contents": []}'])
def test_the_model_of_a_path_wins_and_its_body_is_not_touched(rig: Rig, body: bytes) -> None:
    rig.answers(whole({"candidates": []}))
    answer = rig.send("/v1beta/models/gem-1:generateContent?x=1", body)
    if body == b"not json":
        assert answer.status_code == 400
        return
    assert (rig.provider.last.path, rig.provider.last.body) == ("/v1beta/models/gem-1:generateContent?x=1", body)


def test_a_transformed_model_reaches_the_path(rig: Rig) -> None:
    rig.answers(whole({"candidates": []}))
    seen = rig.seen("/v1beta/models/moved-1:countTokens?x=1", {"contents": []})
    assert seen.path == "/v1beta/models/to%2Fmoved-1:countTokens?x=1"
    rig.answers(whole(CONVERSE))
    assert rig.seen("/model/map-amazon.nova:0/converse?x=1", {"messages": []}).path == "/model/amazon.nova%3A0/converse?x=1"
    assert rig.seen(CHAT, {"model": "map-a/b", "messages": TURNS}).path == "/model/a%2Fb/converse"


def test_the_provider_s_model_wins_over_the_client_s(rig: Rig) -> None:
    rig.answers(whole(CONVERSE))
    assert rig.seen(CHAT, {"model": "aws-1", "messages": TURNS}).path == "/model/own%3A1/converse"
    assert rig.seen("/model/aws-1/invoke", {"x": 1}).path == "/model/own%3A1/invoke"
    rig.answers(whole(chat()))
    # It is there before transformations run.
    assert rig.seen(CHAT, {"model": "mine", "messages": TURNS}, "pinned.test").json == {
        "model": "the-pinned", "messages": TURNS, "metadata": {"asked": "the-pinned"},
    }  # fmt: skip


def test_a_transformation_may_supply_the_model(rig: Rig) -> None:
    assert rig.seen(CHAT, {"user": "me", "messages": TURNS}, "supplied.test").json["model"] == "from-me"
    assert rig.seen(CHAT, {"model": "given", "messages": TURNS}, "supplied.test").json["model"] == "given"
    refused = rig.send(CHAT, {"messages": TURNS}, "supplied.test")
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith("model not specified: ")


@pytest.mark.parametrize(
    ("model", "wanted"), [("fast", "faster"), ("claude-3-5", "two"), ("claude-2", "one"), ("other", "other")]
)
def test_an_alias_is_resolved_once(rig: Rig, model: str, wanted: str) -> None:
    rig.answers(whole({"input_tokens": 3}))
    seen = rig.seen("/v1/messages/count_tokens", {"model": model, "messages": TURNS}, "aliased.test")
    assert (seen.path, seen.json["model"]) == ("/v1/messages/count_tokens", wanted)
    rig.answers(whole(message()))
    assert rig.seen("/v1/messages", {"model": model, "max_tokens": 9, "messages": TURNS}, "aliased.test").json["model"] == wanted


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"model": "small", "max_tokens": 5}, {"model": "gpt-small", "max_completion_tokens": 5}),
        ({"model": "other", "max_tokens": 5}, {"model": "other", "max_tokens": 5}),
        (
            {"model": "gpt-1", "max_tokens": 5, "max_completion_tokens": 6},
            {"model": "gpt-1", "max_completion_tokens": 6},
        ),
    ],
)
def test_the_limit_of_tokens_has_the_name_that_the_model_knows(rig: Rig, body: Any, wanted: Any) -> None:
    assert rig.seen(CHAT, body, "gpt.test").json == wanted


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        ({"model": "gpt-capped", "max_tokens": 90000}, 100),
        ({"model": "gpt-capped"}, 100),
        ({"model": "gpt-usual"}, 100),
        ({"model": "gpt-usual", "max_tokens": 5}, 5),
        ({"model": "gpt-usual", "max_completion_tokens": 6}, 6),
    ],
)
def test_a_limit_of_the_configuration_gets_that_name_too(rig: Rig, body: Any, limit: int) -> None:
    assert rig.seen(CHAT, body).json == {"model": body["model"], "max_completion_tokens": limit, **(
        {} if body["model"] == "gpt-capped" else {"stream_options": {"include_usage": False}}
    )}  # fmt: skip


@pytest.mark.parametrize(
    ("model", "options", "wanted", "told"),
    [
        ("gpt-1", {}, {"include_usage": True}, False),
        ("gpt-1", None, {"include_usage": True}, False),
        ("gpt-1", {"include_obfuscation": False}, {"include_obfuscation": False, "include_usage": True}, False),
        ("gpt-1", {"include_usage": True}, {"include_usage": True}, True),
        # Who does not want it is not counted.
        ("gpt-1", {"include_usage": False}, {"include_usage": False}, True),
        ("gpt-usual", None, {"include_usage": True}, False),
    ],
)
def test_usage_is_asked_for_unless_the_client_says_what_it_wants(
    rig: Rig, model: str, options: Any, wanted: Any, told: bool
) -> None:
    usage = event({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "real", "choices": [],
                   "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}})  # fmt: skip
    rig.answers(stream(chunk("a"), chunk(None, "stop"), usage, DONE))
    answer = rig.send(CHAT, {"model": model, "stream": True, "messages": TURNS, "stream_options": options})
    assert rig.provider.last.json["stream_options"] == wanted
    assert ("prompt_tokens" in answer.text) is told


def test_a_last_transformation_sees_the_provider_s_format(rig: Rig) -> None:
    rig.answers(whole(message()))
    told = {"model": "claude-1", "messages": TURNS, "max_tokens": 7, "temperature": 0.5}
    seen = rig.seen(CHAT, told).json
    assert (seen["max_tokens"], seen["top_k"]) == (7, 8)
    assert "temperature" not in seen
    # Not in what nobody reads.
    body = b'{"model": "claude-1", "max_tokens": 7}'
    assert rig.seen("/v1/other", body).json["top_k"] == 8


def test_a_prefix_takes_the_place_of_v1(rig: Rig) -> None:
    assert rig.seen(CHAT, {"model": "m"}, "prefixed.test").path == "/api/chat/completions"
    assert rig.seen("/v1/messages", {"model": "m", "max_tokens": 1, "messages": TURNS}, "prefixed.test").path == (
        "/api/chat/completions"
    )
    assert rig.seen("/v1/files?x=1", {"model": "m"}, "prefixed.test").path == "/api/files?x=1"
    assert rig.seen("/other", {"model": "m"}, "prefixed.test").path == "/api/other"


def test_a_custom_provider_is_asked_in_what_it_declares(rig: Rig) -> None:
    rig.answers(whole(response()))
    told = {"model": "m", "max_tokens": 9, "messages": TURNS, "system": [
        {"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}}]}  # fmt: skip
    seen = rig.seen("/v1/messages", told, "custom.test")
    assert (seen.path, seen.json["max_output_tokens"]) == ("/own/responses", 9)
    rig.answers(whole({"candidates": []}))
    assert rig.seen("/v1beta/models/x:generateContent", {"contents": []}, "custom.test").path == (
        "/v1beta/models/x:generateContent"
    )
    before = len(rig.provider.seen)
    refused = rig.send("/v1/embeddings", {"model": "m", "input": "x"}, "custom.test")
    assert refused.status_code == 400
    assert "unsupported conversion: from embeddings to provider mine (supported: " in refused.text
    assert len(rig.provider.seen) == before


def test_a_stream_of_google_s_is_events_if_it_is_asked_as_such(rig: Rig) -> None:
    told = b'{"candidates":[{"finishReason":"STOP"}]}'
    for query, events in (("", False), ("?alt=json", False), ("?alt=sse", True), ("?x=1&alt=sse", True)):
        rig.answers(stream(b"data: " + told + b"\n\n"))
        answer = rig.send(f"/v1beta/models/gem-1:streamGenerateContent{query}", {"contents": []})
        assert answer.content == (b"data: " + told + b"\n\n" if events else b"[" + told + b"]")
    rig.answers(whole({"candidates": []}))
    assert rig.send("/v1beta/models/gem-1:generateContent", {"contents": []}).status_code == 200


def test_errors_of_the_provider_s_own_format_pass_byte_for_byte(rig: Rig) -> None:
    raw = b'{ "error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED", "details": [1]} }'
    rig.answers(whole(raw, 403))
    answer = rig.send("/v1beta/models/gem-1:generateContent", {"contents": []})
    assert (answer.status_code, answer.content) == (403, raw)


def test_an_answer_in_an_encoding_that_cannot_be_read_is_502(rig: Rig) -> None:
    rig.answers(whole(message(), content_encoding="br"))
    answer = rig.send(CHAT, {"model": "claude-1", "messages": TURNS, "max_tokens": 7})
    assert answer.status_code == 502
    assert "cannot be decoded: br" in answer.json()["error"]["message"]
    rig.answers(whole(gzip.compress(json.dumps(message()).encode()), content_encoding="gzip"))
    answer = rig.send(CHAT, {"model": "claude-1", "messages": TURNS, "max_tokens": 7})
    assert answer.json()["choices"][0]["message"]["content"] == "hello"


def test_a_streaming_request_with_an_error_is_answered_whole(rig: Rig) -> None:
    rig.answers(whole({"type": "error", "error": {"type": "not_found_error", "message": "gone"}}, 404))
    answer = rig.send(CHAT, {"model": "claude-1", "messages": TURNS, "max_tokens": 7, "stream": True})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
    assert answer.json()["error"]["message"] == "gone"


def test_what_is_detected_keeps_body_and_query(rig: Rig) -> None:
    body = b'{"model" : "gpt-1",  "prompt":"a cat"}'
    seen = rig.seen("/v1/images/generations?x=1", body)
    assert (seen.path, seen.body) == ("/v1/images/generations?x=1", body)
    rig.answers(whole(b"\x00\x01 no json"))
    assert rig.send("/v1/images/generations", body).content == b"\x00\x01 no json"
    assert rig.seen("/v1/images/edits", body, "pinned.test").json["model"] == "the-pinned"


def test_cache_points_are_placed_for_clients_that_place_none(rig: Rig) -> None:
    rig.answers(whole(CONVERSE))
    point = {"cachePoint": {"type": "default"}}
    turns = [{"role": "system", "content": "be very kind"}, *TURNS, {"role": "assistant", "content": "ho"}, *TURNS]
    tool = {"type": "function", "function": {"name": "t", "parameters": {"type": "object", "properties": {}}}}
    seen = rig.seen(CHAT, {"model": "cached-1", "messages": turns, "tools": [tool]})
    assert seen.path == "/model/anthropic.claude-3/converse"
    assert seen.json["system"][-1] == seen.json["messages"][1]["content"][-1] == seen.json["toolConfig"]["tools"][-1] == point
    told = {"model": "cached-1", "max_tokens": 9, "messages": [*TURNS, {"role": "assistant", "content": "ho"}, *TURNS]}
    assert "cachePoint" not in rig.seen("/v1/messages", told).body.decode()


def test_a_cache_of_google_s_takes_the_place_of_what_it_holds(rig: Rig) -> None:
    rig.answers(whole({"candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}, "finishReason": "STOP"}]}))
    tool = {"type": "function", "function": {"name": "t", "parameters": {"type": "object", "properties": {}}}}
    told = {"model": "gem-1", "messages": [{"role": "system", "content": "be kind"}, *TURNS], "tools": [tool],
            "tool_choice": "required", "cachedContent": "cachedContents/1", "labels": {"team": "red"}}  # fmt: skip
    seen = rig.seen(CHAT, told).json
    assert (seen["cachedContent"], seen["labels"]) == ("cachedContents/1", {"team": "red"})
    assert not {"systemInstruction", "tools", "toolConfig"} & seen.keys()
