"""What pairs make, read by the vendors' own libraries."""

from __future__ import annotations

import base64
import functools
import json
import threading
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic
import boto3
import openai
import openai.types
import pytest
from anthropic.types import Message
from botocore.config import Config
from botocore.eventstream import EventStreamError
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
from google import genai
from google.genai import errors as google_errors
from google.genai import types as google_types
from llm_cases import IDS, PAIRS, asked_of, cases, framed, plain
from llm_sdk_shapes import shape_faults
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from headgate.dialect.llm import pairs
from headgate.dialect.llm.contract import Untranslatable, UpstreamGarbage
from headgate_engine.sse.decode import SseDecoder

REPLIES = [
    pytest.param(pair, case, id=f"{pair.client}-{pair.upstream}-{case}")
    for pair in PAIRS for case in cases("replies", pair.upstream)
    if not case.startswith("broken")
]  # fmt: skip
ALL_STREAMS = [
    pytest.param(pair, case, id=f"{pair.client}-{pair.upstream}-{case}")
    for pair in PAIRS if pair.streams for case in cases("streams", pair.upstream)
]  # fmt: skip
STREAMS = [param for param in ALL_STREAMS if not str(param.values[1]).startswith("broken")]
BROKEN = [param for param in ALL_STREAMS if str(param.values[1]).startswith("broken")]
MODELS: dict[str, Any] = {
    "completions": ChatCompletion, "messages": Message, "responses": Response,
    "gemini": google_types.GenerateContentResponse, "gemini_count_tokens": google_types.CountTokensResponse,
    "text": openai.types.Completion,
}  # fmt: skip


def strictly(model: Any, value: Any) -> Any:
    """Return the value as the library's type; extensions (reasoning_content) are allowed, wrong types are not."""
    return model.model_validate(value)


@functools.cache
def service_model(name: str) -> ServiceModel:
    """Return what the library knows of a service of AWS: a file of some hundred KB."""
    return ServiceModel(Loader().load_service_model(name, "service-2"), name)


@pytest.mark.parametrize(("pair", "case"), REPLIES)
def test_whole_replies_are_what_the_library_of_the_client_reads(pair: pairs.Converter, case: str) -> None:
    reply = pair.reply(cases("replies", pair.upstream)[case], plain(pair, False))
    if pair.client in MODELS:
        if pair.client == "responses":
            # The library knows no custom values of service_tier.
            reply.pop("service_tier", None)
        if pair.client == "completions":
            reply.pop("service_tier", None)
        strictly(MODELS[pair.client], reply)
    elif pair.client == "converse":
        report = ParamValidator().validate(with_bytes(reply), service_model("bedrock-runtime").operation_model("Converse").output_shape)
        assert not report.has_errors(), report.generate_report()
    elif pair.client == "embeddings":
        openai.types.CreateEmbeddingResponse.model_validate(reply)


def stream_of(pair: pairs.Converter, case: str) -> bytes:
    stream = pair.stream(plain(pair, True))
    out = b"".join(stream.feed(piece) for piece in framed(pair, cases("streams", pair.upstream)[case]))
    return out + stream.end(None)


class Provider(BaseHTTPRequestHandler):
    """Answers everything with one stream."""

    body = b""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(("pair", "case"), STREAMS)
def test_streams_are_what_the_library_of_the_client_puts_together(
    pair: pairs.Converter, case: str, provider: str
) -> None:
    Provider.body = stream_of(pair, case)
    text, calls = READ[pair.client](provider)
    if case == "text":
        assert text == "Hello ☃"
    if case == "length":
        assert text == "Hel"
    if case == "tools":
        assert calls == [("get_weather", {"city": "Oslo"}), ("now", {})]


@pytest.mark.parametrize(("pair", "case"), BROKEN)
def test_streams_that_broke_are_errors_to_the_library_of_the_client(
    pair: pairs.Converter, case: str, provider: str
) -> None:
    Provider.body = stream_of(pair, case)
    with pytest.raises((openai.APIError, anthropic.APIError, google_errors.APIError, EventStreamError, Failed)):
        READ[pair.client](provider)


class Failed(Exception):
    """A response failed, which its library tells as an event."""


Found = tuple[str, list[tuple[str, Any]]]


# A client takes longer to make than to use.
@functools.cache
def openai_client(provider: str) -> openai.OpenAI:
    return openai.OpenAI(api_key="x", max_retries=0, base_url=provider)


@functools.cache
def anthropic_client(provider: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="x", max_retries=0, base_url=provider)


@functools.cache
def google_client(provider: str) -> genai.Client:
    return genai.Client(api_key="x", http_options={"base_url": provider})


@functools.cache
def aws_client(provider: str) -> Any:
    return boto3.client(
        "bedrock-runtime", endpoint_url=provider, region_name="us-east-1", aws_access_key_id="a",
        aws_secret_access_key="not-a-real-one", config=Config(retries={"total_max_attempts": 1}),
    )  # fmt: skip


def completions_of(provider: str) -> Found:
    client = openai_client(provider)
    text: list[str] = []
    calls: dict[int, list[Any]] = {}
    stops = []
    with client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "x"}], stream=True
    ) as stream:
        for chunk in stream:
            for choice in chunk.choices:
                text.append(choice.delta.content or "")
                stops += [choice.finish_reason] if choice.finish_reason else []
                for call in choice.delta.tool_calls or []:
                    # The library's types of chunks have no custom calls yet; it keeps what it does not know.
                    custom = (call.model_extra or {}).get("custom")
                    assert (call.function is None) == (call.type == "custom" or custom is not None)
                    told = custom or {"name": call.function.name, "input": call.function.arguments}
                    if call.index not in calls:
                        assert call.id
                        calls[call.index] = [told["name"] or "", "", custom is not None]
                    calls[call.index][1] += told["input"] or ""
    assert len(stops) == 1
    assert list(calls) == list(range(len(calls)))
    return "".join(text), [
        (name, {"input": given} if custom else json.loads(given)) for name, given, custom in calls.values()
    ]


def messages_of(provider: str) -> Found:
    open_block = None
    for event in SseDecoder().decode(Provider.body):
        data = json.loads(event.data)
        assert data["type"] == event.event
        if event.event == "content_block_start":
            assert open_block is None
            open_block = data["index"]
        elif event.event.startswith("content_block_"):
            assert data["index"] == open_block
            open_block = None if event.event == "content_block_stop" else open_block
    client = anthropic_client(provider)
    with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]) as stream:
        message = stream.get_final_message()
    assert message.stop_reason is not None
    text = "".join(block.text for block in message.content if block.type == "text")
    return text, [(block.name, block.input) for block in message.content if block.type == "tool_use"]


def responses_of(provider: str) -> Found:
    events = SseDecoder().decode(Provider.body)
    client = openai_client(provider)
    found: list[Any] = []
    with client.responses.stream(model="m", input="x") as stream:
        for event in stream:
            if event.type in ("response.failed", "error"):
                raise Failed
            found.append(event)
    assert [event.sequence_number for event in found] == list(range(len(found)))
    assert [event.type for event in found] == [event.event for event in events]
    final = found[-1].response
    deltas = "".join(event.delta for event in found if event.type == "response.output_text.delta")
    assert deltas == final.output_text
    items = [event.item.id for event in found if event.type == "response.output_item.done"]
    assert items == [item.id for item in final.output]
    calls = [(item.name, json.loads(item.arguments)) for item in final.output if item.type == "function_call"]
    return final.output_text, calls


def gemini_of(provider: str) -> Found:
    client = google_client(provider)
    text: list[str] = []
    calls: list[tuple[str, Any]] = []
    stops = []
    for chunk in client.models.generate_content_stream(model="m", contents="x"):
        for candidate in chunk.candidates or []:
            stops += [candidate.finish_reason] if candidate.finish_reason else []
            for part in (candidate.content.parts if candidate.content else None) or []:
                text += [part.text] if part.text and not part.thought else []
                if part.function_call is not None:
                    assert part.function_call.id
                    calls.append((part.function_call.name or "", part.function_call.args))
    if not stops:
        raise Failed
    assert len(stops) == 1
    return "".join(text), calls


def text_of(provider: str) -> Found:
    client = openai_client(provider)
    found = list(client.completions.create(model="m", prompt="x", stream=True))
    choices = [choice for chunk in found for choice in chunk.choices]
    assert sum(choice.finish_reason is not None for choice in choices) == 1
    return "".join(choice.text for choice in choices), [("get_weather", {"city": "Oslo"}), ("now", {})]


def converse_of(provider: str) -> Found:
    client = aws_client(provider)
    text: list[str] = []
    calls: dict[int, list[str]] = {}
    names: list[str] = []
    for event in client.converse_stream(modelId="m", messages=[{"role": "user", "content": [{"text": "x"}]}])["stream"]:
        [name] = event
        names.append(name)
        told = event[name]
        if name == "contentBlockStart" and "toolUse" in told["start"]:
            calls[told["contentBlockIndex"]] = [told["start"]["toolUse"]["name"], ""]
        elif name == "contentBlockDelta":
            text.append(told["delta"].get("text", ""))
            if "toolUse" in told["delta"]:
                calls[told["contentBlockIndex"]][1] += told["delta"]["toolUse"]["input"]
    assert (names[0], names[-2:]) == ("messageStart", ["messageStop", "metadata"])
    return "".join(text), [(name, json.loads(given or "{}")) for name, given in calls.values()]


READ = {
    "completions": completions_of, "messages": messages_of, "responses": responses_of, "gemini": gemini_of,
    "text": text_of, "converse": converse_of,
}  # fmt: skip


BEDROCK = {
    "converse": ("bedrock-runtime", "Converse"),
    "bedrock_count_tokens": ("bedrock-runtime", "CountTokens"),
    "bedrock_rerank": ("bedrock-agent-runtime", "Rerank"),
}


def with_bytes(value: Any) -> Any:
    """Return the JSON as the library has it: bytes instead of their base64."""
    if isinstance(value, dict):
        return {
            name: base64.b64decode(inner) if name in ("bytes", "body", "redactedContent") and isinstance(inner, str) else with_bytes(inner)
            for name, inner in value.items()
        }
    return [with_bytes(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair.upstream in BEDROCK],
                         ids=[name for name, pair in zip(IDS, PAIRS, strict=True) if pair.upstream in BEDROCK])  # fmt: skip
def test_requests_to_bedrock_fit_the_vendors_model(pair: pairs.Converter) -> None:
    service, operation = BEDROCK[pair.upstream]
    shape = service_model(service).operation_model(operation).input_shape
    checked = 0
    for body in cases("requests", pair.client).values():
        try:
            asked = asked_of(pair, body)
        except Untranslatable:
            continue
        params = with_bytes(asked.body)
        if "modelId" in shape.members:
            params["modelId"] = asked.model
        report = ParamValidator().validate(params, shape)
        assert not report.has_errors(), report.generate_report()
        checked += 1
    assert checked


@pytest.mark.parametrize("client", ["completions", "messages", "responses"])
def test_requests_to_gemini_fit_the_vendors_types(client: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        types = pytest.importorskip("google.genai.types")
    pair = pairs.PAIRS[client, "gemini"]
    for body in cases("requests", client).values():
        try:
            asked = asked_of(pair, body)
        except Untranslatable:
            continue
        for content in asked.body["contents"]:
            types.Content.model_validate(content)
        types.GenerationConfig.model_validate(asked.body.get("generationConfig", {}))
        for tool in asked.body.get("tools", []):
            types.Tool.model_validate(tool)
        types.ToolConfig.model_validate(asked.body.get("toolConfig", {}))


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_broken_replies_are_told_as_such(pair: pairs.Converter) -> None:
    for case, body in cases("replies", pair.upstream).items():
        if case.startswith("broken"):
            with pytest.raises(UpstreamGarbage):
                pair.reply(body, plain(pair, False))


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair.client in READ],
                         ids=[name for name, pair in zip(IDS, PAIRS, strict=True) if pair.client in READ])  # fmt: skip
def test_requests_fit_the_schema_that_the_vendor_publishes(pair: pairs.Converter) -> None:
    checked = 0
    for case, body in cases("requests", pair.client).items():
        try:
            made = asked_of(pair, body).body
        except Untranslatable:
            continue
        # The provider of the cases is Gemini, whose endpoint for chat completions adds signatures of calls.
        form = "compatible" if pair.upstream == "completions" else pair.upstream
        assert shape_faults(form, made) == [], case
        checked += 1
    assert checked
