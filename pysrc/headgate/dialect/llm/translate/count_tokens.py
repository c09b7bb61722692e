"""Translates count_tokens of Messages to CountTokens of Bedrock.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CountTokens.html.
"""

from __future__ import annotations

import base64

from headgate.dialect.llm import content, fields, history
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest
from headgate.dialect.llm.neutral_reply import garbage
from headgate.dialect.llm.translate import completions_to_messages, gemini_to_completions
from headgate.document.lazy_dataclass import replace
from headgate_engine.llm.translate.writers import dump_json

DROPS = ("nothing: the body is wrapped in the provider's request",)
# Members of a Messages request that are counted.
COUNTED = ("model", "messages", "system", "tools")
ANTHROPIC_VERSION = "2023-06-01"


FROM_GEMINI_DROPS = (
    "generation settings, and every other field that is not part of a prompt",
    "tools other than functions, files by URI other than images",
)


def from_gemini(body: Json, options: Options) -> TranslatedRequest:
    """Return Anthropic's counting request for Google's. Raises Untranslatable."""
    asked = completions_to_messages.request(_prompt_of(body, options), options)
    told = {name: asked.body[name] for name in COUNTED if name in asked.body}
    return TranslatedRequest(body=told, stream=False, model=asked.model, requested=asked.requested)


def from_gemini_to_bedrock(body: Json, options: Options) -> TranslatedRequest:
    """Return Bedrock's counting request for Google's. Raises Untranslatable."""
    return request(from_gemini(body, options).body, options)


def _prompt_of(body: Json, options: Options) -> Json:
    """Return the prompt of Google's counting request, which may hold a whole request, as a chat completions request."""
    body = gemini_to_completions.plain(body)
    inner = fields.obj(body, "generateContentRequest")
    inner = body if inner is None else gemini_to_completions.plain(inner)
    known: Json = {name: inner[name] for name in ("contents", "systemInstruction", "tools") if name in inner}
    return gemini_to_completions.request(known, replace(options, whole_ids=True)).body


def gemini_reply(body: Json, asked: TranslatedRequest) -> Json:
    """Return the client's reply from Anthropic's. Raises UpstreamGarbage."""
    tokens = body.get("input_tokens")
    if type(tokens) is not int or tokens < 0:
        raise garbage("input_tokens", "is not a count")
    return {"totalTokens": tokens}


def gemini_reply_of_bedrock(body: Json, asked: TranslatedRequest) -> Json:
    """Return the client's reply from Bedrock's. Raises UpstreamGarbage."""
    return gemini_reply(reply(body, asked), asked)


def request(body: Json, options: Options) -> TranslatedRequest:
    """Return the provider's request, which contains the body in the form of InvokeModel."""
    model = content.model_of(body, options.model)
    inner = {name: value for name, value in history.messages(body, options.vendor).items() if name != "model"}
    inner["anthropic_version"] = options.anthropic_version or ANTHROPIC_VERSION
    inner["max_tokens"] = 1
    encoded = base64.b64encode(dump_json(inner)).decode()
    return TranslatedRequest(
        body={"input": {"invokeModel": {"body": encoded}}}, stream=False, model=model,
        requested=str(body.get("model") or model), path_suffix=f"/model/{content.model_segment(model)}/count-tokens",
    )  # fmt: skip


def reply(body: Json, asked: TranslatedRequest) -> Json:
    """Return the client's reply with the token count. Raises UpstreamGarbage."""
    tokens = body.get("inputTokens")
    if type(tokens) is not int or tokens < 0:
        raise garbage("inputTokens", "is not a count")
    return {"input_tokens": tokens}
