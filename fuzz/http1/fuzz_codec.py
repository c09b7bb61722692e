"""Whatever a peer sends, in whatever pieces: only RemoteProtocolError comes out, and any cut gives the same events."""

from __future__ import annotations

import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "oracles"), str(ROOT / "fuzz")]
sys.path.append(str(ROOT / "engine"))  # the oracle needs a driver

from h11_oracle import cut, ours  # noqa: E402
from harness import corpus, mutated, run  # noqa: E402
from hostile_http1 import HOSTILE_REQUESTS, HOSTILE_RESPONSES  # noqa: E402

from headgate_drivers.http1 import CLIENT, SERVER  # noqa: E402

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


def check(data: bytes, source: random.Random) -> None:
    """One input: both roles, whole and cut."""
    cuts = [source.randint(1, max(1, len(data))) for _ in range(source.randint(0, 8))]
    for role in (SERVER, CLIENT):
        whole = ours(role, [data])
        assert ours(role, cut(data, cuts)) == whole, (data, cuts)


def main() -> None:
    known = corpus(__file__) + [case[1] for case in (*HOSTILE_REQUESTS, *HOSTILE_RESPONSES) if len(case[1]) < 2000]
    run(__doc__, lambda source: mutated(source.choice(known), PIECES, source), check, known)


if __name__ == "__main__":
    main()
