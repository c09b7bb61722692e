"""What the golden tests of LLM translation share: cases by format, framing of streams, and fixed options.

tests/golden/llm/{requests,replies,streams,errors}/<format>/<case>.json are written by hand; pairs/<pair>.json is what
comes out: HEADGATE_REGOLD=1 writes it anew, and the difference is to be read.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from headgate.dialect.llm import pairs
from headgate.dialect.llm.contract import Framing, Options, TranslatedRequest
from headgate_engine.llm.eventstream import EventStreamDecoder, encode_frame
from headgate_engine.llm.translate.writers import dump_json
from headgate_engine.sse.decode import SseDecoder
from headgate_engine.sse.encode import encode_event

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "llm"
OPTIONS = Options(
    vendor="gcp.gemini", betas=("context-1m-2025-08-07,unheard-of",), metadata='{"team":"a","n":1,"ok":true}',
    guardrail=("gr-1", "2"),
)  # fmt: skip
BY_PATH = ("gemini", "gemini_count_tokens", "converse")
IDS = [f"{client}-{upstream}" for client, upstream in pairs.PAIRS]
PAIRS = list(pairs.PAIRS.values())


@cache
def cases(kind: str, format: str) -> dict[str, Any]:
    """Return the cases of one folder by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted((GOLDEN / kind / format).glob("*.json"))}


def asked_of(pair: pairs.Converter, body: dict[str, Any], stream: bool = False) -> TranslatedRequest:
    """Return the request, with what changes from run to run fixed. Some clients name model and streams in the path."""
    options = replace(OPTIONS, model="m-1", stream=stream) if pair.client in BY_PATH else OPTIONS
    return replace(pair.request(body, options), created=1_700_000_000, ident="0123456789abcdef", begun=0.0)


@cache
def plain(pair: pairs.Converter, stream: bool) -> TranslatedRequest:
    """Return a request for replies. It is the same object for all: nobody may change it."""
    client = pair.client
    name = {"embeddings": "single", "rerank": "basic"}.get(client, "basic")
    body = dict(cases("requests", client)[name])
    if stream and client in BY_PATH:
        return asked_of(pair, body, True)
    if stream:
        body["stream"] = True
        if client == "completions":
            body["stream_options"] = {"include_usage": True}
    return asked_of(pair, body)


def events_of(client: str, out: bytes) -> list[Any]:
    """Return the events that a client is told, with `event` and `data`."""
    return EventStreamDecoder().decode(out) if client == "converse" else SseDecoder().decode(out)


def framed(pair: pairs.Converter, events: list[dict[str, Any]]) -> list[bytes]:
    """Return each upstream event as its bytes."""
    found = []
    for event in events:
        given = event["data"]
        data = given.encode() if isinstance(given, str) else dump_json(given)
        if pair.framing is Framing.SSE:
            found.append(encode_event(data, event.get("event")))
        else:
            name = event["event"]
            kind = "exception" if name.endswith("Exception") else "event"
            headers = {f":{kind}-type": name, ":content-type": "application/json", ":message-type": kind}
            found.append(encode_frame(headers, data))
    return found
