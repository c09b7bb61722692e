"""The vendors' clients at providers that speak another vendor's format."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from tests.end_to_end.llm_formats import frame
from tests.end_to_end.llm_rig import anthropic_client, openai_client
from tests.end_to_end.llm_translated_rig import CONVERSE, GEMINI
from tests.end_to_end.provider_stand_in import (
    DONE,
    Answer,
    StandIn,
    chat,
    chunk,
    event,
    message,
    message_events,
    reset,
    stream,
    whole,
)

pytestmark = pytest.mark.warm

ROOT = Path(__file__).parents[2]
NOTHING = whole({})
MESSAGES: list[Any] = [{"role": "user", "content": "hi"}]
CONFIG = """
gateways:
  default: {port: {port}}
llm:
  models:
  - {name: "gpt-*", provider: openai, params: {baseUrl: "http://127.0.0.1:FIRST/v1", apiKey: sk-openai}}
  - {name: "claude-*", provider: anthropic, params: {baseUrl: "http://127.0.0.1:SECOND", apiKey: sk-ant-api}}
  - {name: "gem-*", provider: gemini, params: {baseUrl: "http://127.0.0.1:SECOND", apiKey: AIza-key}}
  - {name: "aws-*", provider: bedrock, params: {baseUrl: "http://127.0.0.1:SECOND", apiKey: bedrock-key}}
  virtualModels:
  - name: either
    routing: {failover: {targets: [{model: gpt-x, priority: 1}, {model: claude-x, priority: 2}]}}
"""


@pytest.fixture
def serve(gateway, stand_in) -> Callable[..., Any]:
    """`serve(first, second)`: a gateway with an OpenAI provider, and one that is Anthropic and Gemini."""

    def start(first: Answer = NOTHING, second: Answer = NOTHING):
        one, two = stand_in(first), stand_in(second)
        return gateway(CONFIG.replace("FIRST", str(one.port)).replace("SECOND", str(two.port))), one, two

    return start


def test_messages_at_openai(serve) -> None:
    running, provider, _ = serve(whole(chat()))
    answer = anthropic_client(running).messages.create(
        model="gpt-x", max_tokens=9, system="be brief", messages=MESSAGES
    )
    assert answer.content[0].text == "hello"
    assert answer.stop_reason == "end_turn"
    assert (answer.usage.input_tokens, answer.usage.cache_read_input_tokens, answer.usage.output_tokens) == (7, 4, 7)
    seen = provider.last
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == "Bearer sk-openai"
    assert "x-api-key" not in seen.headers
    assert seen.json["model"] == "gpt-x"
    assert seen.json["max_completion_tokens"] == 9
    assert [one["role"] for one in seen.json["messages"]] == ["system", "user"]
    running.wait_log("gen_ai.usage.input_tokens=11")
    assert "gen_ai.usage.cache_read.input_tokens=4" in running.log()


def test_a_long_request_at_openai(serve) -> None:
    """It is translated beside the loop."""
    running, provider, _ = serve(whole(chat()))
    turns: list[Any] = [{"role": ("user", "assistant")[at % 2], "content": f"turn {at}"} for at in range(8001)]
    answer = anthropic_client(running).messages.create(model="gpt-x", max_tokens=9, system="be brief", messages=turns)
    assert answer.content[0].text == "hello"
    seen = provider.last
    assert len(seen.body) > 256 * 1024
    assert [one["content"] for one in seen.json["messages"]] == ["be brief", *(one["content"] for one in turns)]
    assert seen.headers["content-type"] == "application/json"
    assert (seen.json["model"], seen.json["max_completion_tokens"]) == ("gpt-x", 9)


def packed(body: Any) -> Answer:
    """A JSON answer in gzip."""
    return whole(gzip.compress(json.dumps(body).encode()), content_encoding="gzip")


LONG_TEXT = "a@b.co writes a few words, " * 8000
GUARD = """
  policies:
    guardrails: {response: [{regex: {builtins: [Email]}}]}
"""


@pytest.mark.parametrize("answer", [whole, packed], ids=["plain", "packed"])
@pytest.mark.parametrize("guards", ["", GUARD], ids=["unguarded", "guarded"])
def test_a_long_answer_of_openai(gateway, stand_in, answer: Callable[[Any], Answer], guards: str) -> None:
    """It is translated beside the loop, and judged behind that."""
    provider = stand_in(answer(chat(LONG_TEXT)))
    text = CONFIG.replace("FIRST", str(provider.port)).replace("SECOND", "1").replace("\nllm:", "\nllm:" + guards.rstrip("\n"))
    running = gateway(text)
    told = anthropic_client(running).messages.create(model="gpt-x", max_tokens=9, messages=MESSAGES)
    assert told.content[0].text == (LONG_TEXT.replace("a@b.co", "<EMAIL_ADDRESS>") if guards else LONG_TEXT)
    assert (told.stop_reason, told.usage.output_tokens) == ("end_turn", 7)
    running.wait_log("gen_ai.usage.output_tokens=7")
    running.wait_metric('gw_gen_ai_client_token_usage_sum{gen_ai_token_type="output"', 7)


def test_a_long_answer_that_is_none(gateway, stand_in) -> None:
    provider = stand_in(whole(b'{"choices": [' + b"1, " * 70_000))
    running = gateway(CONFIG.replace("FIRST", str(provider.port)).replace("SECOND", "1"))
    with pytest.raises(anthropic.InternalServerError) as found:
        anthropic_client(running).messages.create(model="gpt-x", max_tokens=9, messages=MESSAGES)
    assert found.value.status_code == 502
    assert found.value.body["error"]["message"].startswith("failed to process LLM response: ")


def test_messages_at_openai_streamed(serve) -> None:
    usage = event({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "real", "choices": [],
                   "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}})  # fmt: skip
    running, provider, _ = serve(stream(chunk("hel"), chunk("lo"), chunk(finish="stop"), usage, DONE))
    with anthropic_client(running).messages.stream(model="gpt-x", max_tokens=9, messages=MESSAGES) as found:
        assert "".join(found.text_stream) == "hello"
        final = found.get_final_message()
    assert (final.stop_reason, final.usage.output_tokens) == ("end_turn", 5)
    assert provider.last.json["stream_options"] == {"include_usage": True}
    running.wait_log("gen_ai.usage.output_tokens=5")
    assert "gw.ai.time_to_first_token=" in running.log()


def test_completions_at_anthropic(serve) -> None:
    running, _, provider = serve(second=whole(message()))
    answer = openai_client(running).chat.completions.create(model="claude-x", messages=MESSAGES, max_tokens=9)
    assert answer.choices[0].message.content == "hello"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 105
    assert answer.usage.completion_tokens == 7
    seen = provider.last
    assert seen.path == "/v1/messages"
    assert seen.headers["x-api-key"] == "sk-ant-api"
    assert seen.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in seen.headers
    assert seen.headers["content-length"] == str(len(seen.body))
    running.wait_log("gen_ai.usage.input_tokens=105")


def test_completions_at_anthropic_streamed(serve) -> None:
    running, _, _ = serve(second=stream(*message_events("hel", "lo")))
    chunks = list(openai_client(running).chat.completions.create(model="claude-x", messages=MESSAGES, stream=True))
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "hello"
    assert chunks[-1].choices[0].finish_reason == "stop"
    running.wait_log("gen_ai.usage.output_tokens=7")


def test_client_that_leaves_with_the_last_event_in_its_hands(serve) -> None:
    """Its client closes at [DONE]: the tokens count, and the answer was whole, whatever the provider still has to say."""
    running, _, provider = serve(second=stream(*message_events("hel", "lo"), end="stall"))
    client = openai_client(running)
    for one in client.chat.completions.create(model="claude-x", messages=MESSAGES, stream=True):
        assert one.object == "chat.completion.chunk"
    client.close()
    assert provider.gone.wait(40)
    running.wait_log("gen_ai.usage.output_tokens=7")
    assert "client closed" not in running.log()


def test_tokens_of_a_stream_whose_client_leaves_early(serve) -> None:
    running, _, provider = serve(second=stream(*message_events("hel", "lo")[:4], end="stall"))
    client = openai_client(running)
    found = client.chat.completions.create(model="claude-x", messages=MESSAGES, stream=True)
    while not next(found).choices[0].delta.content:
        pass
    found.response.close()
    client.close()
    assert provider.gone.wait(40)
    running.wait_log("gen_ai.usage.input_tokens=105")
    assert 'error="client closed the connection"' in running.log()


def test_responses_at_anthropic(serve) -> None:
    running, _, _ = serve(second=whole(message()))
    assert openai_client(running).responses.create(model="claude-x", input="hi").output_text == "hello"


def test_responses_at_anthropic_streamed(serve) -> None:
    running, _, _ = serve(second=stream(*message_events("hel", "lo")))
    with openai_client(running).responses.stream(model="claude-x", input="hi") as found:
        assert found.get_final_response().output_text == "hello"




def test_completions_at_gemini(serve) -> None:
    running, _, provider = serve(second=whole(GEMINI))
    answer = openai_client(running).chat.completions.create(model="gem-x", messages=MESSAGES)
    assert answer.choices[0].message.content == "hello"
    seen = provider.last
    assert seen.path == "/v1beta/models/gem-x:generateContent"
    assert seen.headers["x-goog-api-key"] == "AIza-key"
    assert seen.json["contents"][0]["parts"] == [{"text": "hi"}]


def test_completions_at_gemini_streamed(serve) -> None:
    running, _, provider = serve(second=stream(event(GEMINI)))
    chunks = list(openai_client(running).chat.completions.create(model="gem-x", messages=MESSAGES, stream=True))
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "hello"
    assert provider.last.path == "/v1beta/models/gem-x:streamGenerateContent?alt=sse"


def test_tools_come_and_go(serve) -> None:
    called = chat()
    called["choices"][0] |= {
        "message": {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": "sky"}'}}]},
        "finish_reason": "tool_calls",
    }  # fmt: skip
    running, provider, _ = serve(whole(called))
    tools: Any = [{"name": "look", "description": "d", "input_schema": {"type": "object", "properties": {}}}]
    answer = anthropic_client(running).messages.create(model="gpt-x", max_tokens=9, messages=MESSAGES, tools=tools)
    used = answer.content[-1]
    assert (answer.stop_reason, used.type, used.id, used.input) == ("tool_use", "tool_use", "call_1", {"at": "sky"})
    assert provider.last.json["tools"][0]["function"]["name"] == "look"


def test_an_error_of_openai_in_anthropic_s_form(serve) -> None:
    running, _, _ = serve(whole({"error": {"message": "too many", "type": "x", "code": None, "param": None}}, 429))
    with pytest.raises(anthropic.RateLimitError) as found:
        anthropic_client(running).messages.create(model="gpt-x", max_tokens=9, messages=MESSAGES)
    assert found.value.body == {"type": "error", "error": {"type": "rate_limit_error", "message": "too many"}}


def test_an_error_of_anthropic_in_openai_s_form(serve) -> None:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}}
    running, _, _ = serve(second=whole(body, 400))
    with pytest.raises(openai.BadRequestError) as found:
        openai_client(running).chat.completions.create(model="claude-x", messages=MESSAGES, stream=True)
    assert "bad" in str(found.value)


def test_an_answer_that_is_no_answer_is_a_502(serve) -> None:
    running, _, _ = serve(second=whole(b"<html>"))
    with pytest.raises(openai.InternalServerError) as found:
        openai_client(running).chat.completions.create(model="claude-x", messages=MESSAGES)
    assert found.value.status_code == 502


def test_a_request_that_cannot_be_said_is_refused_before_any_call(serve) -> None:
    running, _, provider = serve()
    bad: Any = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}]
    with pytest.raises(openai.BadRequestError) as found:
        openai_client(running).chat.completions.create(model="gem-x", messages=bad)
    assert "image" in str(found.value)
    assert provider.seen == []


def test_a_translated_stream_that_breaks_ends_in_one_error(serve) -> None:
    running, _, _ = serve(second=stream(*message_events("hel", "lo")[:4], end="cut"))
    body = json.dumps({"model": "claude-x", "messages": MESSAGES, "stream": True}).encode()
    _, text = running.fetch(f"{running.url}/v1/chat/completions", "POST", data=body)
    events = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    assert "error" in json.loads(events[-1])
    assert sum("error" in json.loads(one) for one in events) == 1
    assert "[DONE]" not in text


FIRST_FAULTS = {"503": whole({"error": {"message": "no"}}, 503), "reset": reset, "empty": stream()}


@pytest.mark.parametrize("fault", ["503", "reset"])
def test_another_vendor_takes_over(serve, fault: str) -> None:
    running, one, two = serve(FIRST_FAULTS[fault], whole(message("from Claude")))
    answer = openai_client(running).chat.completions.create(model="either", messages=MESSAGES)
    assert answer.choices[0].message.content == "from Claude"
    assert (one.last.json["model"], two.last.json["model"]) == ("gpt-x", "claude-x")
    assert "authorization" not in two.last.headers


@pytest.mark.parametrize("fault", FIRST_FAULTS)
def test_another_vendor_takes_over_a_stream(serve, fault: str) -> None:
    running, _, _ = serve(FIRST_FAULTS[fault], stream(*message_events("from ", "Claude")))
    with anthropic_client(running).messages.stream(model="either", max_tokens=9, messages=MESSAGES) as found:
        assert "".join(found.text_stream) == "from Claude"


def test_the_failover_example_at_stand_ins(gateway) -> None:
    one, two = StandIn(whole({"error": {"message": "no"}}, 529)), StandIn(whole(message("from Claude")))
    text = (ROOT / "examples/llm-failover.yaml").read_text().replace("llm:\n", "llm:\n  port: {port}\n", 1)
    running = gateway(text, environment={
        "OPENAI_URL": f"http://127.0.0.1:{one.port}/v1", "OPENAI_API_KEY": "k",
        "ANTHROPIC_URL": f"http://127.0.0.1:{two.port}", "ANTHROPIC_API_KEY": "k",
    })  # fmt: skip
    answer = openai_client(running).chat.completions.create(model="assistant", messages=MESSAGES)
    assert answer.choices[0].message.content == "from Claude"
    assert (one.last.json["model"], two.last.json["model"]) == ("gpt-5", "claude-sonnet")
    one.answers[:] = [whole(chat())]
    openai_client(running).chat.completions.create(model="cheap-or-good", messages=MESSAGES)
    assert one.last.json["model"] == "gpt-5-mini"
    one.close()
    two.close()


def test_google_s_own_client_at_gemini(serve) -> None:
    from google import genai

    running, _, provider = serve(second=whole(GEMINI))
    found = genai.Client(api_key="own", http_options={"base_url": running.url})
    answer = found.models.generate_content(model="gem-x", contents="hi")
    assert answer.text == "hello"
    assert provider.last.path.endswith("/models/gem-x:generateContent")
    assert provider.last.headers["x-goog-api-key"] == "AIza-key"
    provider.answers[:] = [stream(event(GEMINI))]
    pieces = found.models.generate_content_stream(model="gem-x", contents="hi")
    assert "".join(piece.text or "" for piece in pieces) == "hello"
    assert provider.last.path.endswith("/models/gem-x:streamGenerateContent?alt=sse")
    running.wait_log("gen_ai.usage.output_tokens=5")




def test_messages_at_bedrock(serve) -> None:
    running, _, provider = serve(second=whole(CONVERSE))
    answer = anthropic_client(running).messages.create(model="aws-x:0", max_tokens=9, messages=MESSAGES)
    assert answer.content[0].text == "hello"
    seen = provider.last
    assert seen.path == "/model/aws-x%3A0/converse"
    assert seen.headers["authorization"] == "Bearer bedrock-key"
    assert seen.json["messages"] == [{"role": "user", "content": [{"text": "hi"}]}]
    running.wait_log("gen_ai.provider.name=aws.bedrock")
    assert "gen_ai.usage.output_tokens=5" in running.log()


def test_completions_at_bedrock_streamed(serve) -> None:
    frames = [
        frame("messageStart", {"role": "assistant"}),
        frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hel"}}),
        frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "lo"}}),
        frame("contentBlockStop", {"contentBlockIndex": 0}),
        frame("messageStop", {"stopReason": "end_turn"}),
        frame("metadata", {"usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8}}),
    ]
    running, _, provider = serve(second=stream(*frames, kind="application/vnd.amazon.eventstream"))
    chunks = list(openai_client(running).chat.completions.create(model="aws-x", messages=MESSAGES, stream=True))
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "hello"
    assert provider.last.path == "/model/aws-x/converse-stream"
    running.wait_log("gen_ai.usage.output_tokens=5")
