"""Formats by name, and what reads their texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tests.oracles.transcripts import completions, converse, gemini, messages, plain, realtime, responses
from tests.oracles.transcripts.contract import Builder, Transcript

from headgate_engine.guard.spans import check

OBJECT: Final = 123


class Readers(NamedTuple):
    """`guarded`: whether prompt guards look at requests and replies of this format."""

    request: Callable[[Builder], None]
    reply: Callable[[Builder], None]
    guarded: bool = False


# Names as in headgate.dialect.llm.contract.Format.
FORMATS: Final = {
    "completions": Readers(completions.request, completions.reply, guarded=True),
    "messages": Readers(messages.request, messages.reply, guarded=True),
    "responses": Readers(responses.request, responses.reply, guarded=True),
    "gemini": Readers(gemini.request, gemini.reply, guarded=True),
    "converse": Readers(converse.request, converse.reply, guarded=True),
    "count_tokens": Readers(messages.request, plain.nothing),
    "gemini_count_tokens": Readers(gemini.request, plain.nothing),
    "embeddings": Readers(plain.embeddings, plain.nothing),
    "rerank": Readers(plain.rerank, plain.nothing),
    # One event at a time, of those that clients send.
    "realtime": Readers(realtime.request, plain.nothing),
}
GUARDED: Final = frozenset(name for name, row in FORMATS.items() if row.guarded)


def request_texts(body: bytes, form: str) -> Transcript:
    """Return the texts of a request; PeekError (a ValueError) when it is no JSON object, KeyError for other formats."""
    return _read(body, FORMATS[form].request)


def reply_texts(body: bytes, form: str) -> Transcript:
    """Return the texts of a 2xx reply; raises as request_texts()."""
    return _read(body, FORMATS[form].reply)


def _read(body: bytes, read: Callable[[Builder], None]) -> Transcript:
    if check(body) != OBJECT:
        raise ValueError("not a JSON object")
    builder = Builder(body)
    read(builder)
    return builder.found
