"""`reasoning_details`, in which OpenRouter's chat completions take back what its vendors thought.

Source: https://openrouter.ai/docs/use-cases/reasoning-tokens. Each entry says by its `format` whose thought it is; a
thought goes back to the vendor that signed it alone, which the name of OpenRouter's model begins with.
"""

from __future__ import annotations

from typing import Final

from headgate.dialect.llm import idents
from headgate.dialect.llm.contract import Json

OPENROUTER: Final = "openrouter"
GOOGLE: Final = "google-gemini-v1"
ANTHROPIC: Final = "anthropic-claude-v1"
OPENAI: Final = "openai-responses-v1"
FORMATS: Final = {"google": GOOGLE, "anthropic": ANTHROPIC, "openai": OPENAI}


def of_turn(model: str, blocks: list[Json], signatures: list[tuple[str, str]]) -> list[Json]:
    """Return the entries for a turn of the assistant.

    `blocks` are its `thinking_blocks`, `signatures` pairs of the id of a tool call and the signature of the thought
    that led to it, which is Gemini's. What another vendor than that of the model has thought is left out.
    """
    form = FORMATS.get(model.partition("/")[0])
    found = [made for block in blocks if (made := _entry(block, form)) is not None]
    if form == GOOGLE:
        found += [{"type": "reasoning.encrypted", "data": signature, "id": ident} for ident, signature in signatures]
    return [{**one, "format": form, "index": index} for index, one in enumerate(found)]


def _entry(block: Json, form: str | None) -> Json | None:
    sealed = idents.unsealed(block.get("data"))
    if sealed is not None:
        own = {"type": "reasoning.encrypted", "data": sealed["encrypted_content"], "id": sealed["id"]}
        return own if form == OPENAI else None
    if form != ANTHROPIC:
        return None
    if block.get("type") == "redacted_thinking":
        return {"type": "reasoning.encrypted", "data": block.get("data")}
    return {"type": "reasoning.text", "text": block.get("thinking"), "signature": block.get("signature")}


def signatures_in(details: list[Json]) -> dict[str, str]:
    """Return Gemini's signatures in an answer's entries by the ids of the calls that they belong to."""
    return {
        one["id"]: one["data"] for one in details
        if one.get("format") == GOOGLE and isinstance(one.get("id"), str) and isinstance(one.get("data"), str)
    }  # fmt: skip
