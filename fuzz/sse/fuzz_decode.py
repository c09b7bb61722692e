"""Whatever the bytes and the cuts: the events are those of the naive reader, and the blocks are the stream."""

from __future__ import annotations

import argparse
import random
import sys
import time
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "engine"), str(ROOT / "tests" / "oracles")]

from sse_naive import naive  # noqa: E402

from headgate_engine.sse.decode import Event, SseDecoder, SseError  # noqa: E402

CORPUS = Path(__file__).parent / "corpus"
PIECES = [b"data", b"data: ", b"event: ", b"id: ", b"retry: ", b":", b" ", b"\r", b"\n", b"\r\n", b"\n\n", b"\r\n\r\n",
          b"\0", b"7", b"\xef\xbb\xbf", b"\xff", b"x" * 30]  # fmt: skip
SMALL = 64


def mutated(data: bytes, source: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(source.randint(1, 6)):
        at = source.randint(0, len(found))
        kind = source.randrange(4)
        if kind == 0:
            found[at:at] = source.choice(PIECES)
        elif kind == 1:
            del found[at : at + source.randint(1, 8)]
        elif kind == 2 and found:
            found[at % len(found)] = source.randrange(256)
        else:
            other = source.randint(0, len(found))
            found[at:at] = found[min(at, other) : max(at, other)][:64]
    return bytes(found)


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    source = random.Random(seed)
    corpus = [path.read_bytes() for path in sorted(CORPUS.glob("*"))]
    for data in corpus:
        check(data, source)
    deadline = time.monotonic() + options.seconds
    runs = 0
    while time.monotonic() < deadline:
        data = mutated(source.choice(corpus), source)
        try:
            check(data, source)
        except BaseException:
            print(f"seed {seed}, input {data!r}", file=sys.stderr)
            raise
        runs += 1
    print(f"{runs} inputs, seed {seed}, nothing found")


if __name__ == "__main__":
    main()
