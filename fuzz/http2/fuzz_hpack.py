"""Whatever stands in header blocks: this decoder and the hpack package read the same, or refuse."""

from __future__ import annotations

import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz")]

from harness import corpus, mutated, observed, run  # noqa: E402

with observed("hpack"):
    import hpack

from headgate_drivers.hpack import decoded, encoded  # noqa: E402
from headgate_engine.errors import RemoteProtocolError  # noqa: E402
from headgate_engine.http2.hpack import HpackDecoder, HpackEncoder  # noqa: E402

PIECES = [b"\x82", b"\xbe", b"\x3f\xe1\x1f", b"\x20", b"\x40\x01a\x01b", b"\x7f\x00", b"\xff\x80\x01", b"\x00\x85", b"\x10", b"\xff\xff"]


def check(data: bytes, source: random.Random) -> None:
    """One input: two blocks of a connection, the second what is behind a cut."""
    cut = source.randint(0, len(data))
    theirs, ours, again = hpack.Decoder(1 << 24), HpackDecoder(1 << 24, 1 << 16), HpackEncoder()
    for block in (data[:cut], data[cut:]):
        try:
            found, over = decoded(ours, block)
        except RemoteProtocolError:
            return
        assert not over
        # What we read the package reads too, and what we write of it comes back.
        assert [(f[0], f[1]) for f in found] == [(bytes(f[0]), bytes(f[1])) for f in theirs.decode(block, raw=True)]
        assert decoded(HpackDecoder(1 << 24, 1 << 16), encoded(again, found))[0] == found
        again = HpackEncoder()


def main() -> None:
    known = corpus(__file__, "corpus_hpack")
    run(__doc__, lambda source: mutated(source.choice(known), PIECES, source), check, known)


if __name__ == "__main__":
    main()
