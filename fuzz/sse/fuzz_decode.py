"""Whatever the bytes and the cuts: the events are those of the naive reader, and the blocks are the stream."""

from __future__ import annotations

import random
import sys
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "oracles"), str(ROOT / "fuzz")]

from harness import corpus, mutated, run  # noqa: E402
from sse_naive import naive  # noqa: E402

from headgate_engine.sse.decode import Event, SseDecoder, SseError  # noqa: E402

PIECES = [b"data", b"data: ", b"event: ", b"id: ", b"retry: ", b":", b" ", b"\r", b"\n", b"\r\n", b"\n\n", b"\r\n\r\n",
          b"\0", b"7", b"\xef\xbb\xbf", b"\xff", b"x" * 30]  # fmt: skip
SMALL = 64


def read(decoder: SseDecoder, pieces: list[bytes]) -> tuple[list[Event], bytes, bool]:
    """The events, the bytes of all blocks and the rest, and whether a limit was met."""
    events: list[Event] = []
    raw = b""
    try:
        for piece in pieces:
            for block, event in decoder.split(piece):
                raw += block
                events += [event] if event else []
    except SseError:
        return events, raw, True
    return events, raw + decoder.rest(), False


def check(data: bytes, source: random.Random) -> None:
    """One input: whole and cut, with the usual limit and with a small one."""
    edges = sorted({0, len(data), *(source.randint(0, len(data)) for _ in range(source.randint(0, 8)))})
    cut = [data[a:b] for a, b in pairwise(edges)]
    for pieces in ([data], cut, [data[at : at + 1] for at in range(len(data))]):
        decoder = SseDecoder()
        events, raw, refused = read(decoder, pieces)
        assert (events, decoder.last_event_id) == naive(data)
        assert raw == data
        assert not refused
    assert read(SseDecoder(SMALL), [data])[2] is read(SseDecoder(SMALL), cut)[2]


def main() -> None:
    known = corpus(__file__)
    run(__doc__, lambda source: mutated(source.choice(known), PIECES, source), check, known)


if __name__ == "__main__":
    main()
