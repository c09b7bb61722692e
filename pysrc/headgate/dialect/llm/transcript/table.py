"""The texts of requests and replies by the names of their formats (headgate.dialect.llm.contract.Format)."""

from __future__ import annotations

from typing import Final

from headgate.dialect.llm.transcript.contract import Transcript
from headgate_engine.guard.readers import FORMATS, read_texts

__all__ = ["FORMATS", "GUARDED", "reply_texts", "request_texts"]

# Formats whose requests and replies prompt guards look at.
GUARDED: Final = frozenset(("completions", "messages", "responses", "gemini"))


def request_texts(body: bytes, form: str) -> Transcript:
    """Return the texts of a request; PeekError (a ValueError) when it is no JSON object, KeyError for other formats."""
    return Transcript(read_texts(body, form))


def reply_texts(body: bytes, form: str) -> Transcript:
    """Return the texts of a 2xx reply; raises as request_texts()."""
    return Transcript(read_texts(body, form, reply=True))
