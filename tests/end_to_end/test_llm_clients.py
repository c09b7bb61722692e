"""LangChain's and LiteLLM's clients at every provider: answers, streams, tools, structured output, pictures, thinking."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from tests.end_to_end.llm_formats import CHAT, CHAT_EVENTS, RESPONSE, RESPONSE_EVENTS, frame
from tests.end_to_end.llm_rig import Rig, served, stand_ins
from tests.end_to_end.llm_translated_rig import CONVERSE, GEMINI
from tests.end_to_end.provider_stand_in import Answer, StandIn, event, message, message_events, stream, whole

pydantic = pytest.importorskip("pydantic")
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
  - {name: "aws-*", provider: bedrock, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: bedrock-key}}
  - {name: "resp-*", provider: {reference: only-responses}}
"""
FRAMES = (
    frame("messageStart", {"role": "assistant"}),
    frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hel"}}),
    frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "lo"}}),
    frame("contentBlockStop", {"contentBlockIndex": 0}),
    frame("messageStop", {"stopReason": "end_turn"}),
    frame("metadata", {"usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8}}),
)
GEMINI_EVENTS = tuple(
    event({**GEMINI, "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0, **end}]})
    for text, end in (("hel", {}), ("lo", {"finishReason": "STOP"}))
)
SPOKEN = (
    *RESPONSE_EVENTS[:2],
    event({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "lo"},
          "response.output_text.delta"),
    RESPONSE_EVENTS[2],
)  # fmt: skip
ARGUMENTS = {"city": "Oslo"}
CALL = json.dumps(ARGUMENTS)
SAID: dict[str, dict[str, Answer]] = {
    "gpt-x": {
        "text": whole(CHAT), "stream": stream(*CHAT_EVENTS),
        "tool": whole({**CHAT, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "Weather", "arguments": CALL}}]}}]}),
    },
    "claude-x": {
        "text": whole(message()), "stream": stream(*message_events("hel", "lo")),
        "tool": whole({**message(), "stop_reason": "tool_use",
                       "content": [{"type": "tool_use", "id": "toolu_1", "name": "Weather", "input": ARGUMENTS}]}),
    },
    "gem-x": {
        "text": whole(GEMINI), "stream": stream(*GEMINI_EVENTS),
        "tool": whole({**GEMINI, "candidates": [{"index": 0, "finishReason": "STOP", "content": {
            "role": "model", "parts": [{"functionCall": {"name": "Weather", "args": ARGUMENTS}}]}}]}),
    },
    "aws-x": {
        "text": whole(CONVERSE), "stream": stream(*FRAMES, kind="application/vnd.amazon.eventstream"),
        "tool": whole({**CONVERSE, "stopReason": "tool_use", "output": {"message": {"role": "assistant", "content": [
            {"toolUse": {"toolUseId": "t1", "name": "Weather", "input": ARGUMENTS}}]}}}),
    },
    "resp-x": {
        "text": whole(RESPONSE), "stream": stream(*SPOKEN),
        "tool": whole({**RESPONSE, "output": [{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "Weather",
                                               "arguments": CALL, "status": "completed"}]}),
    },
}  # fmt: skip
# Parts of paths, and whose format is asked for there: a provider may take several.
FORMATS = {"/chat/completions": "gpt-x", "/messages": "claude-x", "enerateContent": "gem-x", "/converse": "aws-x", "/responses": "resp-x"}
PROVIDERS = tuple(SAID)


def says(kind: str) -> Answer:
    """What a provider says in the format that it is asked in."""

    def answer(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        [form] = [form for part, form in FORMATS.items() if part in handler.path]
        SAID[form][kind](stand_in, handler)

    return answer


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PICTURE = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]
EVERY_PROVIDER = pytest.mark.parametrize("model", PROVIDERS)


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


class Weather(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    """Tell the weather of a city."""

    city: str


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with (
        stand_ins(whole(CHAT)) as [one],
        served(tmp_path_factory.mktemp("clients"), CONFIG.replace("PROVIDER", str(one.port))) as running,
    ):
        yield Rig(running, one)


# -- LangChain ---------------------------------------------------------------------------------------------------------
LANGCHAIN = {"completions": "langchain_openai", "responses": "langchain_openai", "messages": "langchain_anthropic",
             "gemini": "langchain_google_genai", "converse": "langchain_aws"}  # fmt: skip
EVERY_LANGCHAIN = pytest.mark.parametrize(
    "client",
    [pytest.param(name, marks=pytest.mark.skipif(not installed(module), reason="run `make llm-clients`"))
     for name, module in LANGCHAIN.items()],
)  # fmt: skip


AMAZON: dict[str, Any] = {"region_name": "us-east-1", "aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "not-a-real-one"}


def langchain(rig: Rig, client: str, model: str) -> Any:
    """A chat model of LangChain that speaks a format."""
    url = rig.running.url
    if client == "messages":
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(model_name=model, base_url=url, api_key="own", max_retries=0, max_tokens=99)
    if client == "gemini":
        from langchain_google_genai import ChatGoogleGenerativeAI

        return ChatGoogleGenerativeAI(model=model, base_url=url, google_api_key="own", max_retries=1)
    if client == "converse":
        from langchain_aws import ChatBedrockConverse

        # It streams at models of its own list only, unless it is told to.
        return ChatBedrockConverse(model=model, endpoint_url=url, max_tokens=99, disable_streaming=False, **AMAZON)
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model=model, base_url=f"{url}/v1", api_key="own", max_retries=0, use_responses_api=client == "responses"
    )


def text_of(message: Any) -> str:
    """The text of a message, whatever form its content has."""
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else part.get("text", "") for part in content)


@EVERY_LANGCHAIN
@EVERY_PROVIDER
def test_langchain_gets_answers_and_streams(rig: Rig, client: str, model: str) -> None:
    chat = langchain(rig, client, model)
    rig.answers(says("text"))
    answer = chat.invoke("hi")
    assert text_of(answer) == "hello"
    assert answer.usage_metadata["output_tokens"] > 0
    rig.answers(says("stream"))
    assert "".join(text_of(chunk) for chunk in chat.stream("hi")) == "hello"


@EVERY_LANGCHAIN
@EVERY_PROVIDER
def test_langchain_calls_tools_and_structures(rig: Rig, client: str, model: str) -> None:
    chat = langchain(rig, client, model)
    rig.answers(says("tool"))
    answer = chat.bind_tools([Weather]).invoke("weather in Oslo?")
    [call] = answer.tool_calls
    assert (call["name"], call["args"]) == ("Weather", ARGUMENTS)
    # The result goes back in the next turn.
    from langchain_core.messages import HumanMessage, ToolMessage

    rig.answers(says("text"))
    turns = [HumanMessage("weather in Oslo?"), answer, ToolMessage("rain", tool_call_id=call["id"], name="Weather")]
    assert text_of(chat.bind_tools([Weather]).invoke(turns)) == "hello"
    assert b"rain" in rig.provider.last.body
    rig.answers(says("tool"))
    found = chat.with_structured_output(Weather, method="function_calling").invoke("weather in Oslo?")
    assert found == Weather(city="Oslo")


# Where the formats of providers have the schema of an answer.
SCHEMA_AT = {
    "gpt-x": ("response_format", "json_schema", "schema"), "claude-x": ("output_config", "format", "schema"),
    "gem-x": ("generationConfig",), "aws-x": ("outputConfig",), "resp-x": ("text", "format", "schema"),
}  # fmt: skip


@EVERY_LANGCHAIN
@EVERY_PROVIDER
def test_langchain_gets_answers_of_a_schema(rig: Rig, client: str, model: str) -> None:
    wholes = {"gpt-x": CHAT, "claude-x": message(), "gem-x": GEMINI, "aws-x": CONVERSE, "resp-x": RESPONSE}

    def answer(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        [form] = [form for part, form in FORMATS.items() if part in handler.path]
        whole(json.dumps(wholes[form]).replace('"hello"', json.dumps(CALL)).encode())(stand_in, handler)

    rig.answers(answer)
    chat = langchain(rig, client, model)
    assert chat.with_structured_output(Weather, method="json_schema").invoke("weather in Oslo?") == Weather(city="Oslo")
    [form] = [form for part, form in FORMATS.items() if part in rig.provider.last.path]
    found = rig.provider.last.json
    for name in SCHEMA_AT[form]:
        found = found[name]
    assert "city" in json.dumps(found)


@EVERY_LANGCHAIN
@EVERY_PROVIDER
def test_langchain_shows_pictures(rig: Rig, client: str, model: str) -> None:
    from langchain_core.messages import HumanMessage

    rig.answers(says("text"))
    assert text_of(langchain(rig, client, model).invoke([HumanMessage(PICTURE)])) == "hello"
    assert PIXEL[:40].encode() in rig.provider.last.body


# -- LiteLLM -----------------------------------------------------------------------------------------------------------
needs_litellm = pytest.mark.skipif(not installed("litellm"), reason="run `make llm-clients`")
EVERY_LITELLM = pytest.mark.parametrize("client", ["openai", "anthropic", "bedrock/converse"])


def litellm(rig: Rig, client: str, model: str, **more: Any) -> Any:
    """Ask with LiteLLM, which speaks the format of a vendor."""
    from litellm import completion

    base = rig.running.url + ("/v1" if client == "openai" else "")
    given = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 99, **more}
    if client == "bedrock/converse":
        amazon = {f"aws_{name}" if name == "region_name" else name: value for name, value in AMAZON.items()}
        return completion(
            model=f"{client}/{model}", aws_bedrock_runtime_endpoint=base, num_retries=0, **amazon, **given
        )
    return completion(model=f"{client}/{model}", api_base=base, api_key="own", num_retries=0, **given)


@needs_litellm
@EVERY_LITELLM
@EVERY_PROVIDER
def test_litellm_gets_answers_streams_tools_and_pictures(rig: Rig, client: str, model: str) -> None:
    rig.answers(says("text"))
    assert litellm(rig, client, model).choices[0].message.content == "hello"
    seen = [{"role": "user", "content": PICTURE}]
    assert litellm(rig, client, model, messages=seen).choices[0].message.content == "hello"
    assert PIXEL[:40].encode() in rig.provider.last.body
    rig.answers(says("stream"))
    chunks = litellm(rig, client, model, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "hello"
    rig.answers(says("tool"))
    tool = {"type": "function", "function": {"name": "Weather", "parameters": Weather.model_json_schema()}}
    # LiteLLM knows of tools at models of its own list only.
    more = {"allowed_openai_params": ["tools"]} if client == "bedrock/converse" else {}
    [call] = litellm(rig, client, model, tools=[tool], **more).choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("Weather", ARGUMENTS)


@needs_litellm
@EVERY_LITELLM
def test_litellm_keeps_thoughts_and_their_signatures(rig: Rig, client: str) -> None:
    told = message()
    told["content"] = [{"type": "thinking", "thinking": "hm", "signature": "c2lnbmF0dXJl"}, *told["content"]]
    rig.answers(whole(told))
    answer = litellm(rig, client, "claude-x").choices[0].message
    assert answer.reasoning_content == "hm"
    [thought] = answer.thinking_blocks
    assert (thought["thinking"], thought["signature"]) == ("hm", "c2lnbmF0dXJl")
    # They go back in the next turn.
    turns = [{"role": "user", "content": "hi"}, answer.model_dump(exclude_none=True), {"role": "user", "content": "go on"}]
    litellm(rig, client, "claude-x", messages=turns)
    assert rig.provider.last.json["messages"][1]["content"][0]["signature"] == "c2lnbmF0dXJl"
