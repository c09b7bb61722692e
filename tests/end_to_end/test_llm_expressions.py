"""What expressions see of LLM requests and answers: prompts, completions, tool calls, counts, in every format."""

from __future__ import annotations

import gzip
import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import brotli
import pytest
from tests.end_to_end.llm_formats import WAYS, frame
from tests.end_to_end.provider_stand_in import DONE, Answer, StandIn, chat, chunk, event, stream, whole
from tests.end_to_end.running import Gateway, Pool

CONFIG = """
gateways:
  default: {port: {port}}
frontendPolicies:
  accessLog:
    add:
      prompt: llm.prompt
      said: llm.completion
      calls: llm.toolCalls
      tokens: llm.countTokens
llm:
  providers:
  - {name: o, provider: openai, params: {baseUrl: "http://127.0.0.1:PORT/v1", apiKey: k}}
  - {name: a, provider: anthropic, params: {baseUrl: "http://127.0.0.1:PORT", apiKey: k}}
  - {name: g, provider: gemini, params: {baseUrl: "http://127.0.0.1:PORT", apiKey: k}}
  - {name: b, provider: bedrock, params: {baseUrl: "http://127.0.0.1:PORT", apiKey: k}}
  - {name: c, provider: cohere, params: {baseUrl: "http://127.0.0.1:PORT", apiKey: k}}
  models:
  - name: o-masked-*
    provider: {reference: o}
    guardrails:
      streaming: true
      request: [{regex: {rules: [{pattern: "secret"}]}}]
      response: [{regex: {rules: [{pattern: "hush"}]}}]
MODELS
  virtualModels:
  - name: by-words
    routing:
      conditional:
        targets:
        - {when: 'llm.prompt[0].content.contains("long")', model: o-long}
        - {model: o-short}
  policies:
    transformations:
      response:
        set:
          x-said: llm.completion[0]
          x-asked: llm.prompt.map(one, one.role + ":" + one.content).join("|")
"""
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at":[1,2]}'}}
CALLED = {"id": "call_1", "name": "look", "arguments": {"at": [1, 2]}}


class Rig:
    """One gateway in front of one provider; its lines have what expressions found."""

    def __init__(self, folder: Path) -> None:
        self.provider = StandIn(whole({}))
        self.calls = 0
        models = "".join(f'  - {{name: "{one}-*", provider: {{reference: {one}}}}}\n' for one in "oagbc")
        text = CONFIG.replace("MODELS\n", models).replace("PORT", str(self.provider.port))
        self.running: Gateway = Pool(lambda: folder).take(text, (1, "{}", "logging: {format: json}"))

    def close(self) -> None:
        self.running.stop()
        self.provider.close()
        assert "Traceback" not in self.running.log()

    def model(self, start: str, *answers: Answer) -> str:
        self.calls += 1
        self.provider.answers[:] = answers
        return f"{start}-{self.calls}"

    def send(self, path: str, body: bytes, **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.running.port, timeout=30)
        fields = {"content-type": "application/json", "connection": "close"}
        connection.request("POST", path, body, fields | {key.replace("_", "-"): one for key, one in headers.items()})
        return connection.getresponse()

    def line(self, model: str) -> dict[str, Any]:
        """The log line of the one request for a model."""
        deadline = time.monotonic() + 40
        while time.monotonic() < deadline:
            for line in self.running.log().splitlines():
                if f'"gen_ai.request.model":"{model}"' in line:
                    return json.loads(line)
            time.sleep(0.01)
        raise AssertionError(self.running.log())

    def ask(self, way: str, streams: bool, *answers: Answer, **more: Any) -> dict[str, Any]:
        """The line of one request in a format."""
        spoken = WAYS[way]
        model = self.model(spoken.model, *answers)
        path, body = spoken.asked(model, streams)
        answer = self.send(path, json.dumps(json.loads(body) | more).encode())
        assert answer.status == 200, answer.read()
        answer.read()
        return self.line(model)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    found = Rig(tmp_path_factory.mktemp("said"))
    yield found
    found.close()


HI = [{"role": "user", "content": "hi"}]
PROMPTS = {"embeddings": [{"role": "user", "content": "hi"}],
           "rerank": [{"role": "user", "content": "q"}, {"role": "user", "content": "d"}]}  # fmt: skip
SILENT = ("embeddings", "rerank")
CUT_WORDS = ("responses", "converse", "completions at bedrock")
CODERS = {"": None, "gzip": gzip.compress, "br": brotli.compress}


@pytest.mark.parametrize("coding", CODERS)
@pytest.mark.parametrize("way", WAYS)
def test_what_was_said_in_whole_answers(rig: Rig, way: str, coding: str) -> None:
    code = CODERS[coding]
    raw = json.dumps(WAYS[way].whole).encode()
    answer = whole(raw) if code is None else whole(code(raw), content_encoding=coding)
    line = rig.ask(way, False, answer)
    assert line["prompt"] == PROMPTS.get(way, HI)
    if way in SILENT:
        assert "said" not in line
        assert "calls" not in line
    else:
        assert (line["said"], line["calls"]) == (["hello"], [])


@pytest.mark.parametrize("way", [name for name, way in WAYS.items() if way.events])
def test_what_was_said_in_streams(rig: Rig, way: str) -> None:
    spoken = WAYS[way]
    line = rig.ask(way, True, stream(*spoken.events, kind=spoken.kind))
    said = "hel" if way in CUT_WORDS else "hello"           # these stand-ins stream no more
    assert (line["prompt"], line["said"], line["calls"]) == (HI, [said], [])


CHAT_CALL = chat() | {"choices": [
    {"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [CALL]}, "finish_reason": "tool_calls"}
]}  # fmt: skip
MESSAGE_CALL = dict(WAYS["messages"].whole) | {
    "content": [{"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": [1, 2]}}], "stop_reason": "tool_use"
}
GEMINI_PARTS = [{"functionCall": {"id": "call_1", "name": "look", "args": {"at": [1, 2]}}}]
GEMINI_CALL = {"candidates": [{"content": {"role": "model", "parts": GEMINI_PARTS}, "finishReason": "STOP", "index": 0}]}
RESPONSE_ITEM = {"type": "function_call", "id": "f", "call_id": "call_1", "name": "look", "arguments": '{"at":[1,2]}',
                 "status": "completed"}  # fmt: skip
RESPONSE_CALL = dict(WAYS["responses"].whole) | {"output": [RESPONSE_ITEM]}
TOOL_USE = {"toolUse": {"toolUseId": "call_1", "name": "look", "input": {"at": [1, 2]}}}
CONVERSE_CALL = dict(WAYS["converse"].whole) | {"output": {"message": {"role": "assistant", "content": [TOOL_USE]}}}


@pytest.mark.parametrize(
    ("way", "answer"),
    [("completions", CHAT_CALL), ("messages", MESSAGE_CALL), ("gemini", GEMINI_CALL), ("responses", RESPONSE_CALL),
     ("converse", CONVERSE_CALL), ("invoke", MESSAGE_CALL), ("messages at openai", CHAT_CALL),
     ("completions at anthropic", MESSAGE_CALL), ("completions at bedrock", CONVERSE_CALL)],
)  # fmt: skip
def test_tool_calls_of_whole_answers(rig: Rig, way: str, answer: dict[str, Any]) -> None:
    line = rig.ask(way, False, whole(answer))
    assert (line["said"], line["calls"]) == ([""], [CALLED])


def delta(**said: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": said, "finish_reason": None}]})


COMPLETION_PIECES = (
    delta(tool_calls=[{"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": ""}}]),
    delta(tool_calls=[{"index": 0, "function": {"arguments": '{"at":'}}]),
    delta(tool_calls=[{"index": 0, "function": {"arguments": "[1,2]}"}}]),
    chunk(finish="tool_calls"), DONE,
)  # fmt: skip
MESSAGE_PIECES = (
    WAYS["messages"].events[0],
    event({"type": "content_block_start", "index": 0, "content_block":
           {"type": "tool_use", "id": "call_1", "name": "look", "input": {}}}, "content_block_start"),
    *(event({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": part}},
            "content_block_delta") for part in ('{"at":', "[1,2]}")),
    *WAYS["messages"].events[-3:],
)  # fmt: skip
RESPONSE_PIECES = (
    WAYS["responses"].events[0],
    event({"type": "response.output_item.added", "output_index": 0, "item": RESPONSE_ITEM | {"arguments": ""}},
          "response.output_item.added"),
    event({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "f", "delta": '{"at":'},
          "response.function_call_arguments.delta"),
    event({"type": "response.output_item.done", "output_index": 0, "item": RESPONSE_ITEM}, "response.output_item.done"),
    WAYS["responses"].events[-1],
)  # fmt: skip
CONVERSE_PIECES = (
    frame("messageStart", {"role": "assistant"}),
    frame("contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "call_1", "name": "look"}}}),
    frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"toolUse": {"input": '{"at":'}}}),
    frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"toolUse": {"input": "[1,2]}"}}}),
    *WAYS["converse"].events[2:],
)


@pytest.mark.parametrize(
    ("way", "pieces"),
    [("completions", COMPLETION_PIECES), ("messages", MESSAGE_PIECES), ("responses", RESPONSE_PIECES),
     ("converse", CONVERSE_PIECES), ("gemini", (event(GEMINI_CALL),)), ("messages at openai", COMPLETION_PIECES),
     ("completions at anthropic", MESSAGE_PIECES), ("completions at bedrock", CONVERSE_PIECES)],
)  # fmt: skip
def test_tool_calls_of_streams(rig: Rig, way: str, pieces: tuple[bytes, ...]) -> None:
    line = rig.ask(way, True, stream(*pieces, kind=WAYS[way].kind))
    assert line["calls"] == [CALLED]


def test_headers_of_buffered_answers_and_of_streams(rig: Rig) -> None:
    model = rig.model("o", whole(chat()))
    talk = {"messages": [{"role": "system", "content": "brief"}, *HI]}
    answer = rig.send("/v1/chat/completions", json.dumps({"model": model, **talk}).encode())
    assert (answer.headers["x-said"], answer.headers["x-asked"]) == ("hello", "system:brief|user:hi")
    answer.read()
    model = rig.model("o", stream(chunk("a"), chunk("b"), chunk(finish="stop"), DONE))
    answer = rig.send("/v1/chat/completions", json.dumps({"model": model, "stream": True, **talk}).encode())
    # What comes at the end cannot stand in the head, and the stream does not wait for it.
    assert (answer.headers["x-said"], answer.headers["x-asked"]) == (None, "system:brief|user:hi")
    answer.read()
    assert rig.line(model)["said"] == ["ab"]


def test_conditions_of_virtual_models_read_the_prompt(rig: Rig) -> None:
    for text, model in (("a long story", "o-long"), ("hi", "o-short")):
        rig.provider.answers[:] = [whole(chat())]
        body = {"model": "by-words", "messages": [{"role": "user", "content": text}]}
        answer = rig.send("/v1/chat/completions", json.dumps(body).encode())
        assert (answer.status, answer.read() != b"") == (200, True)
        assert rig.provider.last.json["model"] == model


@pytest.mark.parametrize("streams", [False, True])
def test_what_guards_have_masked_is_not_told(rig: Rig, streams: bool) -> None:
    text = "say hush now"
    pieces = (chunk(text[:6]), chunk(text[6:]), chunk(finish="stop"), DONE)
    model = rig.model("o-masked", stream(*pieces) if streams else whole(chat(text)))
    body = {"model": model, "stream": streams, "messages": [{"role": "user", "content": "a secret thing"}]}
    rig.send("/v1/chat/completions", json.dumps(body).encode()).read()
    line = rig.line(model)
    assert line["prompt"] == [{"role": "user", "content": "a <masked> thing"}]
    # Masks of streams are a setting of their own: without it the client gets the text, and so does the line.
    assert line["said"] == [text if streams else "say <masked> now"]


def test_every_choice_has_its_own_text(rig: Rig) -> None:
    two = chat() | {"choices": [{"index": at, "message": {"content": text}} for at, text in ((1, "b"), (0, "a"))]}
    assert rig.ask("completions", False, whole(two), n=2)["said"] == ["a", "b"]
    pieces = [event({"choices": [{"index": at, "delta": {"content": text}}]}) for at, text in ((1, "b"), (0, "a"), (1, "d"))]
    assert rig.ask("completions", True, stream(*pieces, chunk(finish="stop"), DONE), n=2)["said"] == ["a", "bd"]


def test_streams_that_break_and_clients_that_leave_tell_what_came(rig: Rig) -> None:
    line = rig.ask("completions", True, stream(chunk("hel"), end="cut"))
    assert line["said"] == ["hel"]
    model = rig.model("o", stream(chunk("hel"), end="stall"))
    answer = rig.send("/v1/chat/completions", json.dumps({"model": model, "stream": True, "messages": HI}).encode())
    assert b"hel" in answer.read1()
    answer.close()
    assert rig.line(model)["said"] == ["hel"]


def test_errors_and_answers_of_others_say_nothing(rig: Rig) -> None:
    model = rig.model("o", whole({"error": {"message": "no"}}, 400))
    rig.send("/v1/chat/completions", json.dumps({"model": model, "messages": HI}).encode()).read()
    line = rig.line(model)
    assert "said" not in line
    assert line["prompt"] == HI


def test_token_counts_of_requests(rig: Rig) -> None:
    body = {"messages": HI}
    model = rig.model("a", whole({"input_tokens": 13}))
    rig.send("/v1/messages/count_tokens", json.dumps(body | {"model": model}).encode()).read()
    line = rig.line(model)
    assert (line["tokens"], line["prompt"]) == (13, HI)
    assert "gen_ai.usage.input_tokens" not in line, "nothing was consumed"
    model = rig.model("g", whole({"totalTokens": 5}))
    contents = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    rig.send(f"/v1beta/models/{model}:countTokens", json.dumps(contents).encode()).read()
    assert rig.line(model)["tokens"] == 5
    # A provider that does not count: an estimate, and no call.
    model = rig.model("o", whole({}))
    answer = rig.send("/v1/messages/count_tokens", json.dumps(body | {"model": model}).encode())
    assert rig.line(model)["tokens"] == json.loads(answer.read())["input_tokens"]
