"""Images, tools and streaming helpers of the vendors' own clients, at every provider: one gateway for the whole file."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config
from google import genai
from google.genai import types
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.llm_rig import anthropic_client, openai_client, served, stand_ins
from tests.end_to_end.provider_stand_in import (
    DONE,
    StandIn,
    chat,
    chunk,
    event,
    message,
    message_events,
    stream,
    whole,
)

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  models:
  - {name: "gpt-*", provider: openai, params: {baseUrl: "http://127.0.0.1:GPT/v1", apiKey: sk-openai}}
  - {name: "claude-*", provider: anthropic, params: {baseUrl: "http://127.0.0.1:CLAUDE", apiKey: sk-ant-api}}
  - {name: "gem-*", provider: gemini, params: {baseUrl: "http://127.0.0.1:GEM", apiKey: AIza-key}}
  - {name: "aws-*", provider: bedrock, params: {baseUrl: "http://127.0.0.1:AWS", apiKey: bedrock-key}}
"""
VENDORS = ("gpt", "claude", "gem", "aws")
# One pixel.
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
DATA = base64.b64encode(PNG).decode()
DATA_URL = f"data:image/png;base64,{DATA}"
WEB_URL = "https://pictures.example/one.png"
GEMINI = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "hello"}]}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 5, "totalTokenCount": 8},
    "modelVersion": "gem-real",
}
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "hello"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8},
}
WHOLE = {"gpt": chat(), "claude": message(), "gem": GEMINI, "aws": CONVERSE}
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ARGUMENTS = {"city": "Ulm"}


def spoken(form: str, vendor: str) -> str:
    """Whose format the provider is asked in: Gemini's own only by completions, else its likeness of OpenAI's."""
    return "gpt" if vendor == "gem" and form in ("messages", "responses") else vendor


class Rig:
    """The gateway, and a provider for each vendor."""

    def __init__(self, running: Gateway, providers: dict[str, StandIn]) -> None:
        self.running = running
        self.providers = providers
        self.openai, self.anthropic = openai_client(running), anthropic_client(running)
        self.google = genai.Client(api_key="own", http_options={"base_url": running.url})

    def answers(self, vendor: str, *pieces: bytes, end: str = "whole", form: str = "") -> StandIn:
        """Set what the provider answers from now on: these events, or a whole answer, for clients of a format."""
        provider = self.providers[vendor]
        provider.gone.clear()
        provider.answers[:] = [stream(*pieces, end=end) if pieces else whole(WHOLE[spoken(form, vendor)])]
        return provider


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with stand_ins(*(whole(WHOLE[vendor]) for vendor in VENDORS)) as found:
        text = CONFIG
        for vendor, provider in zip(VENDORS, found, strict=True):
            text = text.replace(vendor.upper(), str(provider.port))
        with served(tmp_path_factory.mktemp("sdks"), text) as running:
            yield Rig(running, dict(zip(VENDORS, found, strict=True)))


# -- images ------------------------------------------------------------------------------------------------------------
# What each provider must see of the picture, by where it is.
def anthropic_image(url: str) -> Any:
    source = {"type": "base64", "media_type": "image/png", "data": DATA} if url == DATA_URL else {"type": "url", "url": url}
    return {"type": "image", "source": source}


def images(vendor: str, told: Any) -> list[Any]:
    """The pictures in a request to a provider."""
    if vendor == "gem":
        parts = [part for one in told["contents"] for part in one["parts"]]
        return [part for part in parts if "inlineData" in part or "inline_data" in part or "fileData" in part]
    content = [part for one in told["messages"] for part in one["content"] if isinstance(part, dict)]
    return [part for part in content if "image" in part or part.get("type") in ("image", "image_url")]


SHOWN = {
    "gpt": lambda url: {"type": "image_url", "image_url": {"url": url}},
    "claude": anthropic_image,
    "gem": lambda _: {"inlineData": {"mimeType": "image/png", "data": DATA}},
    "aws": lambda _: {"image": {"format": "png", "source": {"bytes": DATA}}},
}
URLS = {"gpt": (DATA_URL, WEB_URL), "claude": (DATA_URL, WEB_URL), "gem": (DATA_URL,), "aws": (DATA_URL,)}
PLACES = [(vendor, url) for vendor, urls in URLS.items() for url in urls]


@pytest.mark.parametrize(("vendor", "url"), PLACES, ids=[f"{vendor}-{url[:5]}" for vendor, url in PLACES])
def test_pictures_of_openai_s_client(rig: Rig, vendor: str, url: str) -> None:
    provider = rig.answers(vendor)
    parts: list[Any] = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    answer = rig.openai.chat.completions.create(model=f"{vendor}-x", messages=[{"role": "user", "content": parts}])
    assert answer.choices[0].message.content == "hello"
    assert images(vendor, provider.last.json) == [SHOWN[vendor](url)]


@pytest.mark.parametrize(("vendor", "url"), PLACES[2:], ids=[f"{vendor}-{url[:5]}" for vendor, url in PLACES[2:]])
def test_pictures_of_openai_s_client_for_responses(rig: Rig, vendor: str, url: str) -> None:
    provider = rig.answers(vendor, form="responses")
    parts: list[Any] = [
        {"type": "input_text", "text": "what is it?"},
        {"type": "input_image", "image_url": url, "detail": "auto"},
    ]
    answer = rig.openai.responses.create(model=f"{vendor}-x", input=[{"role": "user", "content": parts}])
    assert answer.output_text == "hello"
    seen = spoken("responses", vendor)
    [found] = images(seen, provider.last.json)
    found.get("image_url", {}).pop("detail", None)
    assert found == SHOWN[seen](url)


@pytest.mark.parametrize(("vendor", "url"), PLACES, ids=[f"{vendor}-{url[:5]}" for vendor, url in PLACES])
def test_pictures_of_anthropic_s_client(rig: Rig, vendor: str, url: str) -> None:
    provider = rig.answers(vendor, form="messages")
    parts: list[Any] = [anthropic_image(url), {"type": "text", "text": "what is it?"}]
    answer = rig.anthropic.messages.create(
        model=f"{vendor}-x", max_tokens=9, messages=[{"role": "user", "content": parts}]
    )
    assert answer.content[0].text == "hello"
    seen = spoken("messages", vendor)
    assert images(seen, provider.last.json) == [SHOWN[seen](url)]


def test_pictures_of_google_s_client(rig: Rig) -> None:
    provider = rig.answers("gem")
    picture = types.Part.from_bytes(data=PNG, mime_type="image/png")
    answer = rig.google.models.generate_content(model="gem-x", contents=["what is it?", picture])
    assert answer.text == "hello"
    [seen] = images("gem", provider.last.json)
    # Google's client writes base64 in the alphabet of URLs; what it writes passes.
    assert seen["inlineData"]["data"] == base64.urlsafe_b64encode(PNG).decode()


def test_pictures_of_amazon_s_client(rig: Rig) -> None:
    provider = rig.answers("aws")
    client = boto3.session.Session().client(
        "bedrock-runtime", region_name="eu-west-1", endpoint_url=rig.running.url, aws_access_key_id="A",
        aws_secret_access_key="s", config=Config(retries={"max_attempts": 0}),
    )  # fmt: skip
    content = [{"text": "what is it?"}, {"image": {"format": "png", "source": {"bytes": PNG}}}]
    answer = client.converse(modelId="aws-x", messages=[{"role": "user", "content": content}])
    assert answer["output"]["message"]["content"] == [{"text": "hello"}]
    assert images("aws", provider.last.json) == [SHOWN["aws"](DATA_URL)]
    # The client's signature does not reach the provider: the gateway has a key of its own.
    assert provider.last.headers["authorization"] == "Bearer bedrock-key"


# -- tools in streams, through each client's own helper ----------------------------------------------------------------
def tool_chunk(**call: Any) -> bytes:
    delta = {"tool_calls": [{"index": 0, **call}]}
    return event({
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "real",
        "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
    })  # fmt: skip


def tool_events() -> list[bytes]:
    """Anthropic's: some text, then a call of a tool in pieces."""
    texts = message_events("let me see")
    call = [
        event({"type": "content_block_start", "index": 1,
               "content_block": {"type": "tool_use", "id": "t1", "name": "weather", "input": {}}}, "content_block_start"),
        *(event({"type": "content_block_delta", "index": 1,
                 "delta": {"type": "input_json_delta", "partial_json": piece}}, "content_block_delta")
          for piece in ('{"city', '": "Ulm"}')),
        event({"type": "content_block_stop", "index": 1}, "content_block_stop"),
        event({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None},
               "usage": {"output_tokens": 7}}, "message_delta"),
    ]  # fmt: skip
    return [*texts[:-2], *call, texts[-1]]


TOOL_STREAMS = {
    "gpt": [
        chunk("let me see"),
        tool_chunk(id="t1", type="function", function={"name": "weather", "arguments": ""}),
        tool_chunk(function={"arguments": '{"city'}),
        tool_chunk(function={"arguments": '": "Ulm"}'}),
        chunk(finish="tool_calls"),
        event({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "real", "choices": [],
               "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}}),
        DONE,
    ],
    "claude": tool_events(),
    "gem": [
        event(GEMINI | {"candidates": [{"content": {"role": "model", "parts": [{"text": "let me see"}]}, "index": 0}]}),
        event(GEMINI | {"candidates": [{
            "content": {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": ARGUMENTS}}]},
            "finishReason": "STOP", "index": 0,
        }]}),
    ],
}  # fmt: skip
ASKED: list[Any] = [{"role": "user", "content": "weather in Ulm?"}]


@pytest.mark.parametrize("vendor", TOOL_STREAMS)
def test_openai_s_streaming_helper_for_completions(rig: Rig, vendor: str) -> None:
    rig.answers(vendor, *TOOL_STREAMS[vendor])
    tool: Any = {"type": "function", "function": {"name": "weather", "parameters": WEATHER}}
    with rig.openai.chat.completions.stream(model=f"{vendor}-x", messages=ASKED, tools=[tool]) as found:
        kinds = [one.type for one in found]
        final = found.get_final_completion().choices[0]
    assert {"chunk", "content.delta", "content.done", "tool_calls.function.arguments.done"} <= set(kinds)
    assert (final.message.content, final.finish_reason) == ("let me see", "tool_calls")
    [call] = final.message.tool_calls or []
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments) == ARGUMENTS


@pytest.mark.parametrize("vendor", ["claude", "gem"])
def test_openai_s_streaming_helper_for_responses(rig: Rig, vendor: str) -> None:
    rig.answers(vendor, *TOOL_STREAMS[spoken("responses", vendor)])
    tool: Any = {"type": "function", "name": "weather", "parameters": WEATHER, "strict": False}
    with rig.openai.responses.stream(model=f"{vendor}-x", input=ASKED, tools=[tool]) as found:
        kinds = [one.type for one in found]
        final = found.get_final_response()
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert {"response.output_text.delta", "response.function_call_arguments.done"} <= set(kinds)
    assert final.output_text == "let me see"
    [call] = [one for one in final.output if one.type == "function_call"]
    assert (call.name, json.loads(call.arguments)) == ("weather", ARGUMENTS)


@pytest.mark.parametrize("vendor", TOOL_STREAMS)
def test_anthropic_s_streaming_helper(rig: Rig, vendor: str) -> None:
    rig.answers(vendor, *TOOL_STREAMS[spoken("messages", vendor)])
    tool: Any = {"name": "weather", "input_schema": WEATHER}
    with rig.anthropic.messages.stream(
        model=f"{vendor}-x", max_tokens=9, messages=ASKED, tools=[tool]
    ) as found:
        kinds = [one.type for one in found]
        final = found.get_final_message()
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    assert {"text", "input_json"} <= set(kinds)
    text, call = final.content
    assert (text.type, call.type, final.stop_reason) == ("text", "tool_use", "tool_use")
    assert (text.text, call.name, call.input) == ("let me see", "weather", ARGUMENTS)


def test_google_s_streaming_helper(rig: Rig) -> None:
    rig.answers("gem", *TOOL_STREAMS["gem"])
    tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="weather", parameters_json_schema=WEATHER)])
    pieces = list(rig.google.models.generate_content_stream(
        model="gem-x", contents="weather in Ulm?", config=types.GenerateContentConfig(tools=[tool])
    ))  # fmt: skip
    parts = [part for piece in pieces for part in piece.candidates[0].content.parts]
    assert parts[0].text == "let me see"
    assert (parts[1].function_call.name, parts[1].function_call.args) == ("weather", ARGUMENTS)


# -- a client that leaves ----------------------------------------------------------------------------------------------
FIRST = {
    "gpt": (chunk("a"), chunk("b")),
    "claude": tuple(message_events("a", "b")[:5]),
    "gem": (event(GEMINI | {"candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}, "index": 0}]}),),
    "responses": (
        event({"type": "response.created", "response": {"id": "r", "status": "in_progress"}}, "response.created"),
        event({"type": "response.output_text.delta", "delta": "a"}, "response.output_text.delta"),
    ),
}
PATHS = {
    "completions": ("/v1/chat/completions", {"messages": ASKED, "stream": True}),
    "messages": ("/v1/messages", {"messages": ASKED, "max_tokens": 9, "stream": True}),
    "responses": ("/v1/responses", {"input": "hi", "stream": True}),
    "gemini": ("/v1beta/models/gem-x:streamGenerateContent?alt=sse", {"contents": [{"parts": [{"text": "hi"}]}]}),
}
LEAVING = [
    ("completions", "gpt"), ("completions", "claude"), ("completions", "gem"), ("messages", "gpt"),
    ("messages", "claude"), ("messages", "gem"), ("responses", "gpt"), ("responses", "claude"), ("responses", "gem"),
    ("gemini", "gem"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "vendor"), LEAVING)
def test_a_client_that_leaves_ends_the_provider_s_work(rig: Rig, form: str, vendor: str) -> None:
    native = form == "responses" and vendor == "gpt"
    provider = rig.answers(vendor, *FIRST["responses" if native else spoken(form, vendor)], end="stall")
    path, body = PATHS[form]
    with httpx.stream("POST", rig.running.url + path, json={"model": f"{vendor}-x", **body}, timeout=30) as answer:
        assert answer.status_code == 200
        next(answer.iter_raw())
    assert provider.gone.wait(40)
