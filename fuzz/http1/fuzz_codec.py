"""Whatever a peer sends, in whatever pieces: only RemoteProtocolError comes out, and any cut gives the same events."""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "engine"), str(ROOT / "tests" / "oracles")]

from h11_oracle import cut, ours  # noqa: E402
from hostile_http1 import HOSTILE_REQUESTS, HOSTILE_RESPONSES  # noqa: E402

from headgate_engine.http1.codec import CLIENT, SERVER  # noqa: E402

CORPUS = Path(__file__).parent / "corpus"
PIECES = [
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b":",
    b"\0",
    b"0",
    b"chunked",
    b"Content-Length: ",
    b"\r\n\r\n",
    b"HTTP/1.1",
    b"\xff",
]


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


def check(data: bytes, source: random.Random) -> None:
    """One input: both roles, whole and cut."""
    cuts = [source.randint(1, max(1, len(data))) for _ in range(source.randint(0, 8))]
    for role in (SERVER, CLIENT):
        whole = ours(role, [data])
        assert ours(role, cut(data, cuts)) == whole, (data, cuts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    source = random.Random(seed)
    corpus = [path.read_bytes() for path in sorted(CORPUS.glob("*"))]
    corpus += [case[1] for case in HOSTILE_REQUESTS if len(case[1]) < 2000]
    corpus += [case[1] for case in HOSTILE_RESPONSES if len(case[1]) < 2000]
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
