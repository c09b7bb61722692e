"""Requests that are translated through an intermediate format. They keep what all of the formats can express."""

from __future__ import annotations

import re

from headgate.dialect.llm import efforts, fields, sayable, vendor_tools
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest
from headgate.dialect.llm.translate import (
    completions_to_gemini,
    completions_to_messages,
    completions_to_responses,
    converse_to_messages,
    gemini_to_completions,
    messages_to_completions,
    messages_to_converse,
    messages_to_responses,
    responses_to_completions,
    text_to_completions,
)
from headgate.dialect.llm.translate.converse_blocks import DOCUMENTS
from headgate.document.lazy_dataclass import replace

MESSAGES_TO_GEMINI_DROPS = (
    "`container`, `mcp_servers`, `context_management` and every other field that is not listed above",
    "thinking blocks of earlier turns; signatures of thoughts that did not lead to a tool call",
    "`cache_control`, `disable_parallel_tool_use`",
    "server tools and their results, citations, `metadata` (search results are sent as text)",
    "schema keywords outside OpenAPI 3.0 (`additionalProperties`, `not`, `if`, ...)",
    "refused with 400: images and documents by URL or id",
)
COMPLETIONS_TO_CONVERSE_DROPS = (
    *completions_to_messages.DROPS[:1],
    "`image_url.detail`, `name` of messages, `user`",
    "`strict` of tools for Claude before 4.5, for other models without it, and beyond the vendor's limits",
    "`parallel_tool_calls`; `tool_choice` `none` after tool calls (before any call, the tools are left out instead)",
    *completions_to_messages.DROPS[3:],
    "`anthropic-beta` values that are not allowed",
    "refused with 400: images and files by URL or id, files of types that the provider does not read",
)
GEMINI_DROPS = gemini_to_completions.DROPS
_SAMPLING = "`temperature`, and `topP` below 0.95, if thinking is on; for Claude 4.7 and later always"
GEMINI_TO_COMPLETIONS_DROPS = (*GEMINI_DROPS, "`topK`, thoughts of earlier turns")
_SCHEMAS = (
    "JSON output without a schema. In schemas of answers, limits of values become part of the description, and "
    "objects become closed"
)
GEMINI_TO_MESSAGES_DROPS = (*GEMINI_DROPS, _SAMPLING, _SCHEMAS, "`seed`, penalties, audio")
GEMINI_TO_CONVERSE_DROPS = (
    *GEMINI_DROPS, _SAMPLING, _SCHEMAS, "`seed`, penalties", "refused with 400: images by URI",
)  # fmt: skip
GEMINI_TO_RESPONSES_DROPS = (*GEMINI_DROPS, "`topK`, `seed`, penalties, `stopSequences`, thoughts of earlier turns")
TEXT_TO_MESSAGES_DROPS = (*text_to_completions.DROPS, "`seed`, penalties, `logit_bias`, `logprobs`")
TEXT_TO_GEMINI_DROPS = (*text_to_completions.DROPS, "`user`, `logit_bias`")
TEXT_TO_CONVERSE_DROPS = (*TEXT_TO_MESSAGES_DROPS, "`user`")
TEXT_TO_RESPONSES_DROPS = (*text_to_completions.DROPS, "`seed`, penalties, `logit_bias`, `stop`")
_CONVERSE = converse_to_messages.DROPS
_CONVERSE_MARKS = "cache points, except for `gpt-*` from version 5.6"
_THOUGHTS = "thoughts of earlier turns from other vendors"
CONVERSE_TO_COMPLETIONS_DROPS = (
    *_CONVERSE, _CONVERSE_MARKS, _THOUGHTS, "`top_k`; `status` of tool results; citations",
    messages_to_completions.DROPS[-1],
)  # fmt: skip
CONVERSE_TO_RESPONSES_DROPS = (
    *_CONVERSE, _THOUGHTS,
    "`stopSequences`, `top_k`; cache points, except in `system`; citations of documents",
    messages_to_completions.DROPS[-1],
)  # fmt: skip
CONVERSE_TO_GEMINI_DROPS = (
    *_CONVERSE, _THOUGHTS, "cache points, `strict` of tools, citations",
    "schema keywords outside OpenAPI 3.0 (`additionalProperties`, `not`, `if`, ...)",
)  # fmt: skip
_RESPONSES = (*responses_to_completions.DROPS, "`text.verbosity`")
_RESPONSES_THINKING = (
    "`temperature`, and `top_p` below 0.95, if `reasoning.effort` is set; for Claude 4.7 and later always. "
    "`reasoning.effort` for Claude before 3.7; for Claude before 4.7 with a forced tool, and after tool results"
)
_STRICT = "tools[].strict"
_THINKING = "generationConfig.thinkingConfig"
_EXTRA_THINKING = f"{converse_to_messages.EXTRA}.thinking"
# Names of the format between, by the names that the client knows.
_THERE = {
    "reasoning_effort": {
        "messages": "thinking", "responses": "reasoning.effort", "gemini": _THINKING, "converse": _EXTRA_THINKING,
    },
    "thinking": {"responses": "reasoning.effort", "gemini": _THINKING, "converse": _EXTRA_THINKING},
    "temperature": {"gemini": "generationConfig.temperature", "converse": "inferenceConfig.temperature"},
    "top_p": {"gemini": "generationConfig.topP", "converse": "inferenceConfig.topP"},
    "top_k": {"gemini": "generationConfig.topK", "converse": f"{converse_to_messages.EXTRA}.top_k"},
    _STRICT: {"converse": converse_to_messages.STRICT},
    "tool_choice": {"gemini": "toolConfig", "converse": "toolConfig.toolChoice"},
    "response_format": {
        "responses": "text.format", "gemini": "generationConfig.responseMimeType",
        "converse": "outputConfig.textFormat",
    },
    completions_to_messages.SCHEMA: {
        "responses": "text.format.schema", "gemini": "generationConfig.responseSchema",
        "converse": converse_to_messages.SCHEMA,
    },
}  # fmt: skip
# What messages of the format between are to the client.
_TURNS = {"responses": "input[]", "gemini": "contents[]", "text": "prompt"}
_FIRST = re.compile(r"messages\[\d+\]")
RESPONSES_TO_MESSAGES_DROPS = (
    *_RESPONSES,
    "`metadata`, `service_tier`, `safety_identifier`, `prompt_cache_key`",
    "audio, files other than PDF and plain text, `detail` of images",
    "`strict` of tools for Claude before 4.5, at Vertex AI, and beyond the vendor's limits",
    _RESPONSES_THINKING,
    _SCHEMAS,
)
RESPONSES_TO_GEMINI_DROPS = (
    *_RESPONSES,
    "`metadata`, `user`, `service_tier`, `safety_identifier`, `prompt_cache_key`, `parallel_tool_calls`",
    "schema keywords outside OpenAPI 3.0 (`additionalProperties`, `not`, `if`, ...)",
    "signatures of thoughts that did not lead to a tool call",
    "refused with 400: images by http(s) URL",
)
RESPONSES_TO_CONVERSE_DROPS = (
    *_RESPONSES,
    "`metadata`, `user`, `service_tier`, `safety_identifier`, `prompt_cache_key`, `parallel_tool_calls`",
    "`detail` of images; `tool_choice` `none` after tool calls",
    "`strict` of tools for Claude before 4.5, for other models without it, and beyond the vendor's limits",
    _RESPONSES_THINKING,
    _SCHEMAS,
    "refused with 400: images by URL, files of types that the provider does not read",
)


def _join(first: TranslatedRequest, second: TranslatedRequest, client: str = "") -> TranslatedRequest:
    """Return the request of the second step, with the state of the first step that the reply needs.

    `client`: the client's format, if the second step has a path of its own for what is lost.
    """
    dropped = [*first.dropped]
    for path in second.dropped:
        name: str = _THERE.get(path, {}).get(client, path)
        if client in _TURNS:
            name = _FIRST.sub(_TURNS[client], name)
        if client == "gemini":
            name = name.replace("].content[", "].parts[")
        elif client == "responses":
            name = name.replace("].custom.", "].").replace("].function.", "].")
        # Turns of the format between have other numbers.
        name = sayable.general(name) if client else name
        dropped.append(sayable.Past(name) if isinstance(path, sayable.Past) else name)
    return replace(
        second, requested=first.requested, echo=first.echo or second.echo,
        seals=first.seals or second.seals, dropped=tuple(dict.fromkeys(dropped)),
        names={**first.names, **second.names}, include_usage=first.include_usage or second.include_usage,
    )  # fmt: skip


def _with_budget(body: Json, asked: TranslatedRequest) -> TranslatedRequest:
    """Set the thinking budget that a Responses request may have in `vendor_extensions`. It overrides the effort."""
    vendor = fields.obj(body, "vendor_extensions") or {}
    budget = fields.integer(vendor, "thinking_budget_tokens", "vendor_extensions")
    if budget is None:
        return asked
    if efforts.is_adaptive(asked.model):
        efforts.adapt(asked.body, efforts.level_of(budget))
    elif completions_to_messages.in_tool_loop(asked.body["messages"]):
        return replace(asked, dropped=(*asked.dropped, "vendor_extensions.thinking_budget_tokens"))
    else:
        completions_to_messages.set_budget(asked.body, budget)
    return asked


def _responses(body: Json, options: Options) -> TranslatedRequest:
    """Return the chat completions request for a Responses request, for providers with thinking budgets."""
    return responses_to_completions.request(body, replace(options, whole_ids=True))


def _unprobed(first: TranslatedRequest) -> TranslatedRequest:
    """Leave log probabilities out, where the provider has none."""
    if first.body.pop("logprobs", None) is None:
        return first
    return replace(first, dropped=(*first.dropped, "include"))


def responses_to_messages(body: Json, options: Options) -> TranslatedRequest:
    """Return the Messages request for a Responses request. Raises Untranslatable."""
    first = _unprobed(_responses(body, options))
    second = completions_to_messages.request(first.body, options)
    return _join(first, _with_budget(body, second), "responses")


def responses_to_gemini(body: Json, options: Options) -> TranslatedRequest:
    """Return the generateContent request for a Responses request. Raises Untranslatable."""
    first = _responses(body, options)
    return _join(first, completions_to_gemini.request(first.body, options), "responses")


def messages_to_gemini(body: Json, options: Options) -> TranslatedRequest:
    """Return the generateContent request for a Messages request. Raises Untranslatable."""
    first = messages_to_completions.request(body, replace(options, whole_ids=True))
    thinking = fields.obj(body, "thinking") or {}
    if fields.text(thinking, "type", "thinking") == "enabled":
        budget = fields.integer(thinking, "budget_tokens", "thinking") or efforts.LEAST_BUDGET
        first.body["thinking_config"] = completions_to_gemini.thinking_of(first.model, efforts.level_of(budget), budget)
        first = replace(first, dropped=tuple(name for name in first.dropped if name != "thinking"))
    fields.copy(body, first.body, {"top_k": "top_k"})
    # The format has no place for it, whatever the schema is.
    first = replace(first, dropped=tuple(name for name in first.dropped if name != _STRICT))
    return _join(first, completions_to_gemini.request(first.body, options), "messages")


def completions_to_converse(body: Json, options: Options) -> TranslatedRequest:
    """Return the Converse request for a chat completions request. Raises Untranslatable."""
    body = {name: value for name, value in body.items() if name != "parallel_tool_calls"}
    first = completions_to_messages.request(body, options, documents=frozenset(DOCUMENTS))
    second = messages_to_converse.request(first.body, options)
    return _join(first, second, "completions")


def responses_to_converse(body: Json, options: Options) -> TranslatedRequest:
    """Return the Converse request for a Responses request. Raises Untranslatable."""
    first = _unprobed(_responses(body, options))
    first.body.pop("parallel_tool_calls", None)
    middle = completions_to_messages.request(first.body, options, documents=frozenset(DOCUMENTS))
    middle = _with_budget(body, middle)
    return _join(_join(first, middle, "responses"), messages_to_converse.request(middle.body, options), "responses")


def gemini_to_completions_alone(body: Json, options: Options) -> TranslatedRequest:
    """Return the chat completions request for a generateContent request. Raises Untranslatable."""
    asked = gemini_to_completions.request(body, options)
    lost = [*asked.dropped]
    for position, message in enumerate(asked.body["messages"]):
        # The format has no place for another vendor's thoughts.
        if message.pop("thinking_blocks", None):
            lost.append(sayable.Past(f"contents[{position}].parts[]"))
    asked.body["messages"] = [one for one in asked.body["messages"] if one.get("content") or one.get("tool_calls")]
    ran: list[str] = []
    if tools := vendor_tools.kept_for_chat(asked.body.pop("tools", []), asked.body, options.vendor, ran):
        asked.body["tools"] = tools
    else:
        asked.body.pop("tool_choice", None)
    lost += map(sayable.general, ran)
    asked.body.pop("top_k", None)
    return replace(asked, dropped=tuple(lost))


def gemini_to_messages(body: Json, options: Options) -> TranslatedRequest:
    """Return the Messages request for a generateContent request. Raises Untranslatable."""
    first = gemini_to_completions.request(body, replace(options, whole_ids=True))
    return _join(first, completions_to_messages.request(first.body, options), "gemini")


def gemini_to_responses(body: Json, options: Options) -> TranslatedRequest:
    """Return the Responses request for a generateContent request. Raises Untranslatable."""
    first = gemini_to_completions.request(body, replace(options, whole_ids=True))
    return _join(first, completions_to_responses.request(first.body, options), "gemini")


def gemini_to_converse(body: Json, options: Options) -> TranslatedRequest:
    """Return the Converse request for a generateContent request. Raises Untranslatable."""
    first = gemini_to_completions.request(body, replace(options, whole_ids=True))
    return _join(first, completions_to_converse(first.body, options), "gemini")


def _of_converse(body: Json, options: Options, sounds: bool) -> TranslatedRequest:
    """Return the Messages request for a Converse request, for vendors that have levels of effort instead of budgets."""
    dropped: list[str] = []
    out = converse_to_messages.between(body, options, dropped, sounds)
    thinking = fields.obj(out, "thinking", converse_to_messages.EXTRA) or {}
    config = out.get("output_config", {})
    if fields.text(thinking, "type", _EXTRA_THINKING) == "enabled":
        budget = fields.integer(thinking, "budget_tokens", _EXTRA_THINKING) or efforts.LEAST_BUDGET
        config = {"effort": efforts.LEVELS[efforts.level_of(budget)], **config}
    if config.get("effort") is not None and thinking.get("type") != "disabled":
        out["thinking"], out["output_config"] = {"type": "adaptive"}, config
    return converse_to_messages.asked(out, out, options, dropped)


def converse_to_completions(body: Json, options: Options) -> TranslatedRequest:
    """Return the chat completions request for a Converse request. Raises Untranslatable."""
    first = _of_converse(body, options, sounds=True)
    return _join(first, messages_to_completions.request(first.body, options), "converse")


def converse_to_responses(body: Json, options: Options) -> TranslatedRequest:
    """Return the Responses request for a Converse request. Raises Untranslatable."""
    first = _of_converse(body, options, sounds=False)
    return _join(first, messages_to_responses.request(first.body, options), "converse")


def converse_to_gemini(body: Json, options: Options) -> TranslatedRequest:
    """Return the generateContent request for a Converse request. Raises Untranslatable."""
    first = _of_converse(body, options, sounds=True)
    return _join(first, messages_to_gemini(first.body, options), "converse")


def text_to_messages(body: Json, options: Options) -> TranslatedRequest:
    """Return the Messages request for a text completion. Raises Untranslatable."""
    first = text_to_completions.request(body, options)
    return _alone(first, completions_to_messages.request(first.body, options))


def text_to_gemini(body: Json, options: Options) -> TranslatedRequest:
    """Return the generateContent request for a text completion. Raises Untranslatable."""
    first = text_to_completions.request(body, options)
    return _alone(first, completions_to_gemini.request(first.body, options))


def text_to_converse(body: Json, options: Options) -> TranslatedRequest:
    """Return the Converse request for a text completion. Raises Untranslatable."""
    first = text_to_completions.request(body, options)
    return _alone(first, completions_to_converse(first.body, options))


def text_to_responses(body: Json, options: Options) -> TranslatedRequest:
    """Return the Responses request for a text completion. Raises Untranslatable."""
    first = text_to_completions.request(body, options)
    return _alone(first, completions_to_responses.request(first.body, options))


def _alone(first: TranslatedRequest, second: TranslatedRequest) -> TranslatedRequest:
    """Return the request of the second step; whether usage is told is the first one's word."""
    return replace(_join(first, second, "text"), include_usage=first.include_usage)
