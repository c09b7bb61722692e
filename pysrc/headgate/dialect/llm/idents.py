"""Ids of tool calls: each vendor makes its own, and refuses those of others that do not fit its pattern.

Ids are changed in the same way wherever they stand, so that calls and results still belong together.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any, NamedTuple

# Separates the id of a Gemini tool call from the signature of the thought that led to it. Clients return both at once.
THOUGHT = "__thought__"
# Stands for the signature of a tool call by another model (https://ai.google.dev/gemini-api/docs/thought-signatures).
UNSIGNED = "skip_thought_signature_validator"
GEMINI = "gcp.gemini"
_DIGEST = 12


class Idents(NamedTuple):
    """Which ids a vendor takes: characters other than `wrong`, and at most `longest` of them, or exactly so many."""

    wrong: re.Pattern[str]
    longest: int
    exact: bool = False

    def fit(self, ident: str) -> str:
        """Return the id as the vendor takes it, without a signature. Different ids stay different."""
        own = ident.partition(THOUGHT)[0]
        if self.fits(own):
            return own
        digest = hashlib.sha256(own.encode("utf-8", "surrogatepass")).hexdigest()
        if self.exact:
            return digest[: self.longest]
        return f"{self.wrong.sub('_', own)[: self.longest - _DIGEST - 1] or 'call'}_{digest[:_DIGEST]}"

    def fits(self, ident: str) -> bool:
        """Return whether the vendor takes the id as it is."""
        if THOUGHT in ident or self.wrong.search(ident):
            return False
        return len(ident) == self.longest if self.exact else 0 < len(ident) <= self.longest


class Whole(Idents):
    """For a step on the way to another format: ids keep everything."""

    def fit(self, ident: str) -> str:
        return ident


_ANY = re.compile(r"(?!)")
_NO_WORD = re.compile(r"[^A-Za-z0-9_-]")
# Anthropic (messages of its errors), and Bedrock (API_runtime_ToolUseBlock), which also bounds the length.
MESSAGES = Idents(_NO_WORD, 64)
CONVERSE = MESSAGES
# OpenAI: `messages[].tool_calls[].id` and `input[].call_id`, by the messages of its errors.
COMPLETIONS = Idents(_ANY, 40)
RESPONSES = Idents(_ANY, 64)
# Mistral: "must be a-z, A-Z, 0-9, with a length of 9".
MISTRAL = Idents(re.compile(r"[^A-Za-z0-9]"), 9, exact=True)
WHOLE = Whole(_ANY, 0)


# In front of another vendor's signature where a format wants Base64 of anything.
_WRAPPED = b"headgate:"
_REDACTED = b"redacted:"


def wrapped(signature: str, redacted: bool = False) -> str:
    """Return another vendor's signature (or its redacted thought) as Gemini tells signatures: Base64 of bytes."""
    return base64.b64encode(_WRAPPED + (_REDACTED if redacted else b"") + signature.encode("utf-8", "replace")).decode()


def unwrapped(signature: str) -> tuple[str, bool] | None:
    """Return what wrapped() was given; None for a signature of Gemini's own. Clients may encode it for URLs."""
    try:
        found = base64.urlsafe_b64decode(signature.replace("+", "-").replace("/", "_") + "=" * (-len(signature) % 4))
    except ValueError:
        return None
    if not found.startswith(_WRAPPED):
        return None
    rest = found[len(_WRAPPED) :]
    own = rest.removeprefix(_REDACTED)
    return own.decode("utf-8", "replace"), len(own) < len(rest)


def in_base64(data: str) -> str:
    """Return redacted thinking as Bedrock tells it, in Base64: wrapped() if it is not already so."""
    try:
        return data if base64.b64decode(data, validate=True) else wrapped(data, redacted=True)
    except ValueError:
        return wrapped(data, redacted=True)


# In front of what OpenAI has encrypted of its thoughts. It is no Base64, so that nobody takes it for another vendor's.
_SEALED = "headgate_sealed:"


def sealed(ident: str, data: str) -> str:
    """Return a reasoning item of OpenAI's as redacted thinking, which only OpenAI gets back."""
    return f"{_SEALED}{ident}:{data}"


def is_sealed(data: object) -> bool:
    """Return whether redacted thinking is a reasoning item of OpenAI's."""
    return isinstance(data, str) and data.startswith(_SEALED)


def unsealed(data: object) -> dict[str, Any] | None:
    """Return the reasoning item that sealed() was given, None for other redacted thinking."""
    if not isinstance(data, str) or not data.startswith(_SEALED):
        return None
    ident, _, encrypted = data[len(_SEALED) :].partition(":")
    return {"type": "reasoning", "id": ident, "summary": [], "encrypted_content": encrypted}


def sign(call: dict[str, Any], ident: str, first: bool) -> None:
    """Set the signature of a tool call as Gemini's endpoint for chat completions has it. `ident`: of the client.

    The first of parallel calls must have one.
    """
    signature = ident.partition(THOUGHT)[2]
    if signature or first:
        call["extra_content"] = {"google": {"thought_signature": signature or UNSIGNED}}


def signature_in(call: dict[str, Any]) -> str:
    """Return the signature of a tool call by that endpoint, "" without one."""
    found: Any = call.get("extra_content")
    for name in ("google", "thought_signature"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


def of_completions(vendor: str) -> Idents:
    """Return which ids a vendor of chat completions takes."""
    return MISTRAL if vendor == "mistral" else COMPLETIONS
