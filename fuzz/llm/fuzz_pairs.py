"""Whatever the bytes: each pair of formats translates them, or says that it cannot, and streams end with one fault at most."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz")]

from harness import corpus, mutated, observed, run  # noqa: E402

with observed("headgate.dialect"):
    from headgate.dialect.llm.contract import Options, TranslatedRequest, Untranslatable, UpstreamGarbage
    from headgate.dialect.llm.pairs import PAIRS

from headgate_engine.llm.translate.readers import Garbage, load_json  # noqa: E402
from headgate_engine.llm.translate.writers import dump_json  # noqa: E402

WORDS = ("messages", "role", "content", "text", "type", "tool_calls", "tools", "function", "arguments", "input", "contents",
         "choices", "delta", "message_start", "content_block_delta", "response.completed", "candidates", "usage", "index",
         "finish_reason", "stop_reason", "tool_use", "tool_result", "image_url", "system", "user", "stream")  # fmt: skip
PIECES = [f'"{word}"'.encode() for word in WORDS]
PIECES += [b"{", b"}", b"[", b"]", b":", b",", b"null", b"true", b"1e999", b"-1", b'""', b'"\\ud800"', b"data: ", b"event: ",
           b"\n\n", b"[DONE]", b'{"type":"text","text":"a"}', b'{"role":"user","content":"a"}']  # fmt: skip
OPTIONS = Options(model="m")


def check(data: bytes, source: random.Random) -> None:
    """One input, as a request, a reply, an error and a stream of every pair."""
    try:
        told = load_json(data)
    except Garbage:
        told = None
    for pair in PAIRS.values():
        asked = TranslatedRequest(body={}, stream=True, model="m") if not isinstance(told, dict) else _asked(pair, told)
        if asked is None:
            continue
        try:
            dump_json(pair.reply(told, asked))
        except (UpstreamGarbage, ValueError):
            pass
        json.loads(pair.error(500, data, asked)[1])
        if pair.streams:
            stream = pair.stream(asked)
            cut = source.randint(0, len(data))
            out = stream.feed(data[:cut]) + stream.feed(data[cut:])
            failed = stream.failed
            out += stream.end(None)
            assert isinstance(out, bytes)
            assert failed is None or stream.failed == failed
            assert stream.feed(data) == b"" or stream.failed is None


def _asked(pair, told):  # type: ignore[no-untyped-def]
    try:
        asked = pair.request(told, OPTIONS)
        dump_json(asked.body)
    except (Untranslatable, ValueError):
        return None
    return asked


def main() -> None:
    known = corpus(__file__, "corpus_pairs")
    run(__doc__, lambda source: mutated(source.choice(known), PIECES, source), check, known)


if __name__ == "__main__":
    main()
