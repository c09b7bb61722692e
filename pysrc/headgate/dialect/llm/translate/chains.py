"""Requests that are translated through an intermediate format. They keep what all of the formats can express."""

from __future__ import annotations

from dataclasses import replace

from headgate.dialect.llm import fields
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest
from headgate.dialect.llm.translate import (
    completions_to_gemini,
    completions_to_messages,
    messages_to_completions,
    messages_to_converse,
    responses_to_completions,
)
from headgate.dialect.llm.translate.converse_blocks import DOCUMENTS

MESSAGES_TO_GEMINI_DROPS = (
    *messages_to_completions.DROPS[:1],
    "thinking blocks of earlier turns; `thinking` with a budget; signatures of thoughts that led to no tool call",
    "`cache_control`, `is_error` and non-text parts of tool results, `disable_parallel_tool_use`",
    "server tools and their results, citations, search results, `metadata`",
    "keywords of schemas other than those of OpenAPI 3.0 (`additionalProperties`, `not`, `if`, ...)",
    "refused instead of dropped: images and documents by URL or id",
)
COMPLETIONS_TO_CONVERSE_DROPS = (
    *completions_to_messages.DROPS[:1],
    "audio parts, `image_url.detail`, `name` of messages, `strict` of tools, `user`",
    "`parallel_tool_calls`, `tool_choice` none",
    *completions_to_messages.DROPS[3:],
    "`anthropic-beta` values that are not allowed",
    "refused instead of dropped: images and files by URL or id, files of types that the provider does not read",
)
_RESPONSES = responses_to_completions.DROPS
RESPONSES_CARRIED = responses_to_completions.CARRIED - {
    "metadata", "user", "service_tier", "safety_identifier", "prompt_cache_key",
}  # fmt: skip
RESPONSES_TO_MESSAGES_DROPS = (
    *_RESPONSES,
    "`metadata`, `service_tier`, `safety_identifier`, `prompt_cache_key`",
    "audio, files other than PDF and plain text, `detail` of images, `strict` of tools",
    "`temperature`, and `top_p` below 0.95, with `reasoning.effort`; `reasoning.effort` with a forced tool, and "
    "behind results of tools",
)
RESPONSES_TO_GEMINI_DROPS = (
    *_RESPONSES,
    "`metadata`, `user`, `service_tier`, `safety_identifier`, `prompt_cache_key`, `parallel_tool_calls`",
    "keywords of schemas other than those of OpenAPI 3.0 (`additionalProperties`, `not`, `if`, ...)",
    "signatures of thoughts that led to no tool call",
    "refused instead of dropped: images by http(s) URL",
)
RESPONSES_TO_CONVERSE_DROPS = (
    *_RESPONSES,
    "`metadata`, `user`, `service_tier`, `safety_identifier`, `prompt_cache_key`, `parallel_tool_calls`",
    "audio, `detail` of images, `strict` of tools, `tool_choice` none",
    "`temperature`, and `top_p` below 0.95, with `reasoning.effort`; `reasoning.effort` with a forced tool, and "
    "behind results of tools",
    "refused instead of dropped: images by URL, files of types that the provider does not read",
)


def _join(first: TranslatedRequest, second: TranslatedRequest) -> TranslatedRequest:
    """Return the request of the second step, with the state of the first step that the reply needs."""
    return replace(
        second, requested=first.requested, echo=first.echo or second.echo, dropped=(*first.dropped, *second.dropped),
        names={**first.names, **second.names}, include_usage=first.include_usage or second.include_usage,
    )  # fmt: skip


def _with_budget(body: Json, asked: TranslatedRequest) -> TranslatedRequest:
    """Set the thinking budget that a Responses request may have in `vendor_extensions`. It overrides the effort."""
    vendor = fields.obj(body, "vendor_extensions") or {}
    budget = fields.integer(vendor, "thinking_budget_tokens", "vendor_extensions")
    if budget is not None and completions_to_messages.in_tool_loop(asked.body["messages"]):
        return replace(asked, dropped=(*asked.dropped, "vendor_extensions.thinking_budget_tokens"))
    if budget is not None:
        asked.body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    return asked


def _responses(body: Json, options: Options) -> TranslatedRequest:
    """Return the chat completions request for a Responses request, for providers with thinking budgets."""
    asked = responses_to_completions.request(body, options)
    return replace(asked, dropped=tuple(name for name in asked.dropped if name != "vendor_extensions"))


def responses_to_messages(body: Json, options: Options) -> TranslatedRequest:
    """Return the Messages request for a Responses request. Raises Untranslatable."""
    first = _responses(body, options)
    second = completions_to_messages.request(first.body, options)
    return _join(first, _with_budget(body, second))


def responses_to_gemini(body: Json, options: Options) -> TranslatedRequest:
    """Return the generateContent request for a Responses request. Raises Untranslatable."""
    first = responses_to_completions.request(body, options)
    return _join(first, completions_to_gemini.request(first.body, options))


def messages_to_gemini(body: Json, options: Options) -> TranslatedRequest:
    """Return the generateContent request for a Messages request. Raises Untranslatable."""
    first = messages_to_completions.request(body, replace(options, model=options.model))
    return _join(first, completions_to_gemini.request(first.body, options))


def completions_to_converse(body: Json, options: Options) -> TranslatedRequest:
    """Return the Converse request for a chat completions request. Raises Untranslatable."""
    first = completions_to_messages.request(body, options, documents=frozenset(DOCUMENTS))
    second = messages_to_converse.request(first.body, options)
    return _join(first, second)


def responses_to_converse(body: Json, options: Options) -> TranslatedRequest:
    """Return the Converse request for a Responses request. Raises Untranslatable."""
    first = _responses(body, options)
    middle = completions_to_messages.request(first.body, options, documents=frozenset(DOCUMENTS))
    middle = _with_budget(body, middle)
    return _join(_join(first, middle), messages_to_converse.request(middle.body, options))
