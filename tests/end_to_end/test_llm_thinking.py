"""Thinking and tools between vendors, at providers as strict as the vendors (tests/oracles/llm_strict.py)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from llm_conversation import Answer, Conversation
from llm_sdk_shapes import shape_faults
from llm_strict import faults
from tests.end_to_end.llm_rig import Rig, openai_client, served, stand_ins
from tests.end_to_end.provider_stand_in import StandIn, event, message, stream, whole

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  models:
  - {name: "claude-*", provider: anthropic, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: sk-ant-api}}
  - {name: "gpt-*", provider: openai, params: {baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: sk-openai}}
  - {name: "gemini-*", provider: gemini, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: AIza-key}}
  - {name: "us.anthropic.*", provider: bedrock, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: bedrock-key}}
"""
PATHS = {"/v1/messages": "messages", "/v1/chat/completions": "completions", "/v1/responses": "responses"}
ENDS = {"/converse": "converse", "/openai/chat/completions": "compatible", ":generateContent": "gemini"}
CLIENTS = {"completions": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses",
           "converse": "/model/MODEL/converse"}  # fmt: skip
MODELS = ("gemini-3-pro", "claude-sonnet-4-5", "gpt-5.2", "us.anthropic.claude-sonnet-4-5-v1:0")


def refused(stand_in: StandIn) -> tuple[str, list[str]]:
    """Return the format of the last request, and what its vendor refuses in it."""
    path = stand_in.last.path.partition("?")[0]
    form = PATHS.get(path) or next(form for end, form in ENDS.items() if path.endswith(end))
    body = stand_in.last.json
    return form, [*faults(form, body, unquote(path)), *shape_faults(form, body)]


def strict(*answers: Answer) -> Any:
    """Return what answers as the vendor of the format does: 400 for what it refuses."""
    waiting = iter(answers)

    def answer(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        form, wrong = refused(stand_in)
        reply = next(waiting, None)
        said = message() if reply is None else reply.told(form)
        (whole({"error": {"message": "; ".join(wrong)}}, 400) if wrong else whole(said))(stand_in, handler)

    return answer


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with stand_ins(strict()) as [provider]:
        text = CONFIG.replace("PROVIDER", str(provider.port))
        with served(tmp_path_factory.mktemp("thinking"), text) as running:
            yield Rig(running, provider)


@pytest.mark.parametrize("effort", ["none", "minimal", "low", "medium", "high", "xhigh", "max"])
@pytest.mark.parametrize("model", ["claude-opus-4-7", "claude-sonnet-5", "claude-sonnet-4-5", "claude-opus-4-1"])
def test_every_effort_is_taken_by_every_claude(rig: Rig, model: str, effort: str) -> None:
    rig.answers(strict())
    for limit in (9, 2049, 64_000):
        answer = openai_client(rig.running).chat.completions.create(
            model=model, messages=[{"role": "user", "content": "hi"}], max_completion_tokens=limit, temperature=0.5,
            reasoning_effort=effort,  # type: ignore[arg-type]
        )
        assert answer.choices[0].message.content == "hello"
        sent = rig.provider.last.json
        assert ("thinking" in sent) == (effort != "none")
        assert sent["max_tokens"] >= limit


def test_efforts_of_responses(rig: Rig) -> None:
    rig.answers(strict())
    client = openai_client(rig.running)
    for model, thinking in (("claude-opus-4-8", "adaptive"), ("claude-haiku-4-5", "enabled")):
        answer = client.responses.create(model=model, input="hi", max_output_tokens=100, reasoning={"effort": "high"})
        assert answer.output_text == "hello"
        assert rig.provider.last.json["thinking"]["type"] == thinking


@pytest.mark.parametrize("client", list(CLIENTS))
def test_a_conversation_of_twenty_turns_changes_its_vendor_at_every_turn(rig: Rig, client: str) -> None:
    answers = [
        Answer(number, "Hello" * (number % 2), "Hm" * (number % 3), number % 5 == 0, ["now", "get_weather"][: number % 3],
               number % 4 == 0, number % 3 == 1) for number in range(20)
    ]  # fmt: skip
    rig.answers(strict(*answers))
    talk = Conversation(client, keeps=True, thinks=True)
    for model, _ in zip(itertools.cycle(MODELS), answers, strict=False):
        found = rig.post(talk.body(model), CLIENTS[client].replace("MODEL", quote(model)))
        assert found.status_code == 200, found.text
        talk.heard(found.json())
    assert len(rig.provider.last.json.get("messages") or rig.provider.last.json.get("contents") or []) > 20


def test_a_long_history_is_made_fit_beside_the_loop(rig: Rig) -> None:
    rig.answers(strict(*(Answer(number, "", "Hm", False, ["now"], False) for number in range(3))))
    talk = Conversation("completions", keeps=True, thinks=False)
    talk.turns += [{"role": ("assistant", "user")[at % 2], "content": "x" * 999} for at in range(300)]
    for model in ("gemini-3-pro", "gpt-5.2"):
        found = rig.post(talk.body(model))
        assert found.status_code == 200, found.text
        talk.heard(found.json())
    assert "__thought__" in json.dumps(talk.turns)
    assert b"__thought__" not in rig.provider.last.body
    assert len(rig.provider.last.body) > 256 * 1024


def searched() -> Any:
    """Return a stream of Claude that has searched the web and run code by itself."""
    folder = Path(__file__).parents[1] / "golden" / "llm" / "streams" / "messages"
    return stream(*(event(one["data"], one["event"]) for one in json.loads((folder / "searched.json").read_text())))


def test_tools_that_the_vendor_ran_are_no_calls_to_make(rig: Rig) -> None:
    rig.answers(searched())
    client = openai_client(rig.running)
    said, notes = "", []
    for chunk in client.chat.completions.create(
        model="claude-sonnet-4-5", messages=[{"role": "user", "content": "Weather?"}], stream=True
    ):
        for choice in chunk.choices:
            assert not choice.delta.tool_calls
            said += choice.delta.content or ""
            notes += getattr(choice.delta, "annotations", None) or []
            assert choice.finish_reason in (None, "stop")
    assert [said[note["url_citation"]["start_index"] : note["url_citation"]["end_index"]] for note in notes] == ["It rains"]


def test_what_a_vendor_found_is_kept_where_the_format_has_a_place(rig: Rig) -> None:
    rig.answers(searched())
    with openai_client(rig.running).responses.stream(model="claude-sonnet-4-5", input="Weather?") as found:
        final = found.get_final_response()
    assert [item.type for item in final.output] == ["message", "web_search_call", "message", "code_interpreter_call"]
    [note] = final.output[2].content[0].annotations  # type: ignore[union-attr]
    assert note.url == "https://weather.example/oslo"  # type: ignore[union-attr]


def test_chat_clients_keep_thoughts_and_mark_caches_as_with_litellm(rig: Rig) -> None:
    """Two thoughts, a budget of their own, and marks of prompts to cache."""
    mark = {"type": "ephemeral"}
    rig.answers(strict(Answer(1, "Hello", "Hm", True, ["now"], False)))
    talk = Conversation("completions", keeps=True, thinks=False)
    talk.turns[0] = {"role": "user", "content": [{"type": "text", "text": "Begin.", "cache_control": mark}]}
    extra = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 500}
    talk.heard(rig.post({**talk.body("claude-sonnet-4-5"), **extra}).json())
    assert rig.provider.last.json["thinking"] == extra["thinking"]
    kinds = [block["type"] for block in talk.turns[1]["thinking_blocks"]]
    assert kinds == ["thinking", "redacted_thinking"]
    assert rig.post({**talk.body("claude-sonnet-4-5"), **extra}).status_code == 200
    sent = rig.provider.last.json
    assert sent["messages"][0]["content"] == [{"type": "text", "text": "Begin.", "cache_control": mark}]
    assert [block["type"] for block in sent["messages"][1]["content"]] == [*kinds, "text", "tool_use"]
    assert (sent["thinking"], sent["max_tokens"]) == (extra["thinking"], 3024)
