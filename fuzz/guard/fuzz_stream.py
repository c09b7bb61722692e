"""Whatever the bytes and the cuts: a guarded stream of no matches passes byte for byte, and masks never depend on the cuts."""

from __future__ import annotations

import json
import random
import sys
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz")]

from harness import corpus, mutated, run  # noqa: E402

from headgate_engine.guard.scan import BUILTIN_NAMES, Scanner  # noqa: E402
from headgate_engine.guard.stream import STREAMED, StreamGuard  # noqa: E402
from headgate_engine.llm.eventstream import encode_frame  # noqa: E402

PIECES = [b"data: ", b"event: content_block_delta\n", b"\n\n", b"\r\n", b"[DONE]", b'{"choices":[{"index":0,"delta":{"content":"',
          b'"}}]}', b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"', b'"}}', b"jo@", b"ex.io",
          b"219-09-", b"9999", b"\\u0040", b"4111 1111 ", b'{"type":"response.output_text.delta","delta":"', b'"}',
          b'{"candidates":[{"content":{"parts":[{"text":"']  # fmt: skip
MASKS = Scanner([("builtin", name) for name in BUILTIN_NAMES])
NOTHING = Scanner([("pattern", "nobody says this")])


def through(guard: StreamGuard, pieces: list[bytes]) -> bytes:
    """All that comes out when nobody refuses."""
    out = b""
    for piece in pieces:
        guard.feed(piece)
        while guard.due:
            guard.texts()
            guard.passed()
        out += guard.take()
    guard.end()
    while guard.due:
        guard.texts()
        guard.passed()
    return out + guard.take()


def framed(data: bytes) -> bytes:
    """The blocks of a stream as frames of an event stream. A guard gets whole frames only: what is none has ended the stream."""
    out = b""
    for block in data.split(b"\n\n"):
        text = json.dumps(block.decode("latin-1")).encode()
        said = b'{"contentBlockIndex":0,"delta":{"text":' + text + b"}}" if len(block) % 4 else block
        out += encode_frame({":message-type": "event", ":event-type": "contentBlockDelta"}, said)
    return out


def check(events: bytes, source: random.Random) -> None:
    """One input in each format, with masks, with none, and before a judge."""
    for form in sorted(STREAMED):
        data = framed(events) if form == "converse" else events
        edges = sorted({0, len(data), *(source.randint(0, len(data)) for _ in range(source.randint(0, 8)))})
        cut = [data[a:b] for a, b in pairwise(edges)]
        assert through(StreamGuard(form, scanner=NOTHING), cut) == data
        assert through(StreamGuard(form, judged=True, window=8), cut) == data
        masked = through(StreamGuard(form, scanner=MASKS), [data])
        assert through(StreamGuard(form, scanner=MASKS), cut) == masked


def main() -> None:
    known = corpus(__file__)
    run(__doc__, lambda source: mutated(source.choice(known), PIECES, source), check, known)


if __name__ == "__main__":
    main()
