"""Whatever comes first on a connection is read as a PROXY protocol header exactly where the naive reader of the tests finds one,
wherever the bytes are cut."""

from __future__ import annotations

import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz"), str(ROOT / "tests" / "oracles")]

import proxy_naive as naive  # noqa: E402
from harness import corpus, mutated, run  # noqa: E402

from headgate_drivers.tls import read_proxy_header  # noqa: E402
from headgate_engine.link.proxy_header import ProxyHeader  # noqa: E402

PIECES = [b"PROXY ", b"TCP4 ", b"TCP6 ", b"UNKNOWN", b"\r\n", b" ", b"0", b"65535", b"::1", b"1.2.3.4", naive.SIGNATURE, b"\x21",
          b"\x20", b"\x11", b"\0\x0c", b"\0\x24", b"\xff"]  # fmt: skip


def check(data: bytes, source: random.Random) -> None:
    """One input: whole, and growing from cut to cut."""
    expected = naive.read(data)
    header = ProxyHeader()
    found = read_proxy_header(header, data)
    assert found == expected[0], (data, found, expected)
    if found == naive.WHOLE:
        assert (header.length, header.host, header.port) == expected[1:], (data, expected)
    growing = ProxyHeader()
    for end in sorted({*(source.randint(0, len(data)) for _ in range(source.randint(0, 8))), len(data)}):
        last = read_proxy_header(growing, data[:end])
        if last != naive.MORE:
            assert (last, growing.host) == (found, header.host), (data, end)
            break


def make(source: random.Random) -> bytes:
    """An input of the corpus, spoilt."""
    return mutated(source.choice(CORPUS), PIECES, source)


CORPUS = corpus(__file__)

if __name__ == "__main__":
    run(__doc__, make, check, CORPUS)
