"""Whatever the bytes and the cuts: the same messages, whose bytes are those that came, or FrameError and nothing else."""

from __future__ import annotations

import random
import sys
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz")]

from harness import run  # noqa: E402

from headgate_engine.websocket.frames import FrameError, FrameReader, frame  # noqa: E402

MASK = b"\x37\xfa\x21\x3d"
LIMIT = 1000
SIZES = (0, 1, 125, 126, 127, 300, 999, 1000, 1001)
OPCODES = (0, 1, 1, 1, 2, 8, 9, 10, 3)
Message = tuple[int, bytes, bytes]


def stream(masked: bool, source: random.Random) -> bytes:
    """Some frames, whole messages and pieces of them, with a few bytes spoilt now and then."""
    found = bytearray()
    for _ in range(source.randint(1, 6)):
        payload = source.randbytes(source.choice(SIZES))
        one = bytearray(frame(payload, source.choice(OPCODES), MASK if masked else None))
        if source.random() < 0.3:
            one[0] &= 0x7F
        found += one
    for _ in range(source.choice((0, 0, 0, 1, 3))):
        found[source.randrange(len(found))] = source.randrange(256)
    return bytes(found[: source.randint(0, len(found))] if source.random() < 0.2 else found)


def read(masked: bool, pieces: list[bytes]) -> tuple[list[Message], bool]:
    """The messages until a fault, and whether there was one."""
    reader = FrameReader(masked, LIMIT)
    found: list[Message] = []
    try:
        for piece in pieces:
            found += reader.feed(piece)
    except FrameError:
        return found, True
    return found, False


def made(source: random.Random) -> tuple[bytes, bool]:
    masked = source.random() < 0.5
    return stream(masked, source), masked


def read_input(data: bytes) -> tuple[bytes, bool]:
    """Who sends in the first bit, then the stream."""
    return data[1:], bool(data[:1] and data[0] & 1)


def check(found: tuple[bytes, bool], source: random.Random) -> None:
    """One input: whole, cut, and byte by byte."""
    data, masked = found
    edges = sorted({0, len(data), *(source.randint(0, len(data)) for _ in range(source.randint(0, 8)))})
    whole, faulty = read(masked, [data])
    single, same = read(masked, [data[at : at + 1] for at in range(len(data))])
    cut, also = read(masked, [data[a:b] for a, b in pairwise(edges)])
    assert faulty is same is also
    # A fault takes the messages that came in the same piece with it.
    assert single[: len(cut)] == cut
    assert single[: len(whole)] == whole
    if not faulty:
        assert whole == single == cut
        assert all(len(said) <= LIMIT for _, said, _ in whole)
        assert sum(len(raw) for _, _, raw in whole) <= len(data)


def main() -> None:
    run(__doc__, made, check, read=read_input)


if __name__ == "__main__":
    main()
