"""Vertex AI's model names, and its variant of Anthropic's bodies
(https://docs.anthropic.com/en/api/claude-on-vertex-ai).
"""

from __future__ import annotations

import re
from typing import Any, Final

from headgate_engine.llm.edit import edit
from headgate_engine.llm.translate.sliced import SLICE, dump_sliced, load_sliced
from headgate_engine.llm.translate.writers import dump_json

CLAUDE: Final = "claude"
GEMINI: Final = "gemini"
OTHERS: Final = "others"
ANTHROPIC_VERSION: Final = b'"vertex-2023-10-16"'
_CLAUDE_PREFIXES: Final = ("publishers/anthropic/models/", "anthropic/")
_GOOGLE_PREFIXES: Final = ("publishers/google/models/", "models/", "google/")
_DATED: Final = re.compile(r"(.*)-([0-9]{8})")
REMOVED: Final = ("model", "output_format")


def _without(model: str, prefixes: tuple[str, ...]) -> str:
    for prefix in prefixes:
        if model.startswith(prefix):
            return model[len(prefix) :]
    return model


def family_of(model: str) -> str:
    """Return the family of a model."""
    if model.startswith((*_CLAUDE_PREFIXES, "claude-")):
        return CLAUDE
    name = _without(model, _GOOGLE_PREFIXES)
    if name.startswith(("gemini-", "gemini@")) and "embedding" not in name and "/" not in name and "%" not in name:
        return GEMINI
    return OTHERS


def claude_name(model: str) -> str:
    """Return Vertex AI's name of a Claude model: `claude-x-20250514` becomes `claude-x@20250514`."""
    name = _without(model, _CLAUDE_PREFIXES)
    dated = _DATED.fullmatch(name)
    return f"{dated[1]}@{dated[2]}" if dated else name


def google_name(model: str) -> str:
    """Return the model without a prefix of collections."""
    return _without(model, _GOOGLE_PREFIXES)


def claude_body(body: bytes, streaming: bool) -> bytes:
    """Return Anthropic's body for Vertex AI: the path names the model, the body the version."""
    return edit(_unscoped(body), {"anthropic_version": ANTHROPIC_VERSION}, None, REMOVED)


def count_body(body: bytes, streaming: bool) -> bytes:
    """Return the body of a token count, whose path does not name the model."""
    body = _unscoped(body)
    told: Any = load_sliced(body)
    model = told.get("model")
    sets = {"anthropic_version": ANTHROPIC_VERSION}
    if isinstance(model, str):
        sets["model"] = dump_json(claude_name(model))
    return edit(body, sets, None, ("output_format",))


def _unscoped(body: bytes) -> bytes:
    """Return the body without `scope` in any `cache_control`; the same bytes if there is none."""
    if b'"scope"' not in body or b'"cache_control"' not in body:
        return body
    told: Any = load_sliced(body)
    waiting, found = [told], False
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            control = one.get("cache_control")
            if isinstance(control, dict) and control.pop("scope", None) is not None:
                found = True
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    if not found:
        return body
    # Long bodies are adapted in a thread: no call holds the interpreter's lock for long.
    return dump_json(told) if len(body) <= SLICE else dump_sliced(told)
