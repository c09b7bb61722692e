"""Complete replies of legacy text completions (https://platform.openai.com/docs/api-reference/completions/object)."""

from __future__ import annotations

from headgate.dialect.llm.contract import Json, TranslatedRequest
from headgate.dialect.llm.neutral_reply import NeutralReply, Refusal, Text
from headgate_engine.llm.translate.probs import text_probs
from headgate_engine.llm.translate.stops import write_stop
from headgate_engine.llm.translate.writers import completions_usage_of


def write(reply: NeutralReply, asked: TranslatedRequest) -> Json:
    """Return a reply in this format; what is no text has no place in it."""
    out: Json = {
        "id": reply.id or f"cmpl-{asked.ident}",
        "object": "text_completion",
        "created": reply.created or asked.created,
        "model": reply.model or asked.model,
        "choices": [_choice(one, index, asked) for index, one in enumerate((reply, *reply.others))],
    }
    if reply.usage is not None:
        out["usage"] = completions_usage_of(reply.usage)
    return out


def _choice(reply: NeutralReply, index: int, asked: TranslatedRequest) -> Json:
    text = "".join(part.text for part in reply.parts if isinstance(part, Text | Refusal))
    reason = write_stop("text", reply.ended())
    asked.untold = asked.untold or bool(reply.untold or reply.images() or reply.sounds() or reply.ran_others())
    echoed = asked.echo.get("echo", "")
    probs = text_probs(reply.probs, len(echoed)) if reply.probs else None
    return {"text": echoed + text, "index": index, "logprobs": probs, "finish_reason": reason}
