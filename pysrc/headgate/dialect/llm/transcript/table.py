"""Reading the texts of requests and replies by the name of their format (headgate.dialect.llm.contract.Format)."""

from __future__ import annotations

from typing import Final

from headgate.dialect.llm.transcript.contract import Transcript
from headgate_engine.guard.readers import FORMATS, read_texts

__all__ = ["FORMATS", "GUARDED", "reply_texts", "request_texts"]

# Formats whose requests and replies are inspected by prompt guards.
GUARDED: Final = frozenset(("completions", "messages", "responses", "gemini", "converse"))


def request_texts(body: bytes, form: str) -> Transcript:
    """Return the texts of a request.

    Raises PeekError (a ValueError) if the body is not a JSON object, KeyError for a format that is not in FORMATS.
    """
    return Transcript(read_texts(body, form))


def reply_texts(body: bytes, form: str) -> Transcript:
    """Return the texts of a 2xx reply. Raises the same errors as request_texts()."""
    return Transcript(read_texts(body, form, reply=True))
