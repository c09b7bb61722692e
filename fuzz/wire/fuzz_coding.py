"""Whatever the bytes and the cuts: a decoder gives bounded pieces, the same however it is fed, or raises CodingError."""

from __future__ import annotations

import gzip
import random
import sys
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz")]

import brotli  # noqa: E402
from backports import zstd  # noqa: E402
from harness import mutated, run  # noqa: E402

from headgate_engine.wire.coding import CODINGS, CodingError, Decoder  # noqa: E402

MAKE = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstd.compress}
TEXTS = (b"", b'{"model":"m"}', b"a" * 5000, bytes(range(256)) * 20)
PIECES = [b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x78\x9c", b"\x00\x00\xff\xff", b"\x01", b"\xff" * 4]
STEP = 512
# Brotli gives what it has in its own blocks.
SLACK = 1 << 18


def fed(coding: str, data: bytes, size: int) -> tuple[bytes, bool, bool]:
    """What came, whether the coding's end did, and whether it was refused."""
    decoder = Decoder(coding)
    found = b""
    try:
        for at in range(0, len(data), size):
            for piece in decoder.decode(data[at : at + size], STEP):
                assert len(piece) <= (SLACK if coding == "br" else STEP)
                found += piece
    except CodingError:
        return found, False, True
    return found, decoder.done, False


def made(source: random.Random) -> tuple[str, bytes, int]:
    coding = source.choice(CODINGS)
    raw = MAKE[coding](source.choice(TEXTS))
    return coding, mutated(raw, PIECES, source) if source.random() < 0.8 else raw, source.randint(1, 40)


def read_input(data: bytes) -> tuple[str, bytes, int]:
    """The coding in the first byte, the size of the pieces in the second, then the body."""
    first, second = (data + b"\0\0")[:2]
    return CODINGS[first % len(CODINGS)], data[2:], 1 + second % 40


def check(given: tuple[str, bytes, int], _: random.Random) -> None:
    """One input, whole and cut."""
    coding, data, size = given
    whole, cut = fed(coding, data, max(len(data), 1)), fed(coding, data, size)
    # The libraries of the others check more (what stands behind the end, lengths) of what comes at once.
    assert whole[1:] == cut[1:] or coding in ("br", "zstd"), (coding, data, size)
    # What a broken body gives before it is refused depends on the cuts; one is the beginning of the other.
    assert whole[0].startswith(cut[0]) or cut[0].startswith(whole[0])
    if not whole[2] and not cut[2]:
        assert whole[0] == cut[0]


def main() -> None:
    run(__doc__, made, check, read=read_input)


if __name__ == "__main__":
    main()
