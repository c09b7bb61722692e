"""Translates legacy text completions to chat: the prompt is what a user says.

Source: https://platform.openai.com/docs/api-reference/completions.
"""

from __future__ import annotations

from headgate.dialect.llm import content, fields
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest, Untranslatable

DROPS = (
    "`best_of`, and every other field that is not listed above",
    "refused with 400: `suffix`, prompts as token numbers, more than one prompt",
)
SAME = (
    "temperature", "top_p", "stop", "presence_penalty", "frequency_penalty", "seed", "user", "logit_bias", "stream",
)  # fmt: skip
# Vendors whose newest models refuse `max_tokens`.
NEW_LIMIT = frozenset({"openai", "azure", "copilot"})


def request(body: Json, options: Options) -> TranslatedRequest:
    """Return the chat completions request. Raises Untranslatable."""
    model = content.model_of(body, options.model)
    if body.get("suffix"):
        raise Untranslatable("suffix", "a chat model fills nothing in")
    prompt = _prompt(body)
    out: Json = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    fields.copy(body, out, {name: name for name in SAME})
    limit = "max_completion_tokens" if options.vendor in NEW_LIMIT else "max_tokens"
    fields.copy(body, out, {"max_tokens": limit})
    if (tops := fields.integer(body, "logprobs")) is not None:
        out["logprobs"] = True
        if tops:
            out["top_logprobs"] = tops
    stream = bool(fields.flag(body, "stream"))
    usage = bool(fields.flag(fields.obj(body, "stream_options") or {}, "include_usage", "stream_options"))
    if stream:
        out["stream_options"] = {"include_usage": True}
    echo = {"echo": prompt} if fields.flag(body, "echo") else {}
    return TranslatedRequest(
        body=out, stream=stream, model=model, requested=str(body.get("model") or model), include_usage=usage, echo=echo
    )


def _prompt(body: Json) -> str:
    found = body.get("prompt")
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    if not isinstance(found, str):
        raise Untranslatable("prompt", "must be one text for a chat model")
    if not found.strip():
        raise Untranslatable("prompt", "must not be empty")
    return found
