"""Whatever the bytes and the cuts: frames are the same, or the decoder refuses with EventStreamError and nothing else."""

from __future__ import annotations

import random
import sys
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz")]

from harness import corpus, mutated, run  # noqa: E402

from headgate_drivers.llm import rest_of_frames  # noqa: E402
from headgate_engine.llm.eventstream import EventStreamDecoder, EventStreamError, EventStreamMessage, encode_frame  # noqa: E402

FRAME = encode_frame({":message-type": "event", ":event-type": "messageStop"}, b"{}")
PIECES = [FRAME, FRAME[:12], FRAME[12:], b"\0\0\0\x10\0\0\0\0", b":message-type\x07\0\x05event", b"\xff" * 8, b"\0" * 16]


def read(pieces: list[bytes]) -> tuple[list[EventStreamMessage], bytes, bool]:
    """The frames, the rest, and whether the stream was refused."""
    decoder = EventStreamDecoder(4096)
    found: list[EventStreamMessage] = []
    try:
        for piece in pieces:
            found += decoder.decode(piece)
        decoder.decode(b"")              # tells of a fault that stood behind whole frames
    except EventStreamError:
        return found, b"", True
    return found, rest_of_frames(decoder), False


def check(data: bytes, source: random.Random) -> None:
    """One input: whole, by bytes and cut; frames in front of a fault may be told with it or before it."""
    edges = sorted({0, len(data), *(source.randint(0, len(data)) for _ in range(source.randint(0, 8)))})
    whole, rest, refused = read([data])
    for pieces in ([data[a:b] for a, b in pairwise(edges)], [data[at : at + 1] for at in range(len(data))]):
        found, other, same = read(pieces)
        assert same is refused
        assert found[: len(whole)] == whole
        assert refused or (found, other) == (whole, rest)


def main() -> None:
    known = corpus(__file__)
    run(__doc__, lambda source: mutated(source.choice(known), PIECES, source), check, known)


if __name__ == "__main__":
    main()
