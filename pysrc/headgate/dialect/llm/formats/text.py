"""Complete replies of legacy text completions (https://platform.openai.com/docs/api-reference/completions/object)."""

from __future__ import annotations

from headgate.dialect.llm.contract import Json, TranslatedRequest
from headgate.dialect.llm.said import Refusal, Said, Text
from headgate_engine.llm.translate.probs import text_probs
from headgate_engine.llm.translate.stops import write_stop
from headgate_engine.llm.translate.writers import completions_usage_of


def write(said: Said, asked: TranslatedRequest) -> Json:
    """Return a reply in this format; what is no text has no place in it."""
    out: Json = {
        "id": said.id or f"cmpl-{asked.ident}",
        "object": "text_completion",
        "created": said.created or asked.created,
        "model": said.model or asked.model,
        "choices": [_choice(one, index, asked) for index, one in enumerate((said, *said.others))],
    }
    if said.usage is not None:
        out["usage"] = completions_usage_of(said.usage)
    return out


def _choice(said: Said, index: int, asked: TranslatedRequest) -> Json:
    text = "".join(part.text for part in said.parts if isinstance(part, Text | Refusal))
    reason = write_stop("text", said.ended())
    asked.untold = asked.untold or bool(said.untold or said.images() or said.sounds() or said.ran_others())
    echoed = asked.echo.get("echo", "")
    probs = text_probs(said.probs, len(echoed)) if said.probs else None
    return {"text": echoed + text, "index": index, "logprobs": probs, "finish_reason": reason}
