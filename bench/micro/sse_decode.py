"""headgate_engine.sse against a splitter in Python."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.micro.timing import Row, compare, same, show
from headgate_engine.sse.decode import SseDecoder
from headgate_engine.sse.encode import encode_event

PAYLOADS = [b'{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"token %d "}}]}' % n for n in range(50)]
STREAM = b"".join(b"data: " + payload + b"\n\n" for payload in PAYLOADS)
LINES = re.compile(rb"\r\n|\r|\n")
PIECE = 37


def naive(pieces: list[bytes]) -> list[bytes]:
    """Data of the events, by joining everything and splitting it again."""
    found: list[bytes] = []
    data: list[bytes] = []
    for line in LINES.split(b"".join(pieces)):
        if not line and data:
            found.append(b"\n".join(data))
            data = []
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
    return found


def naive_incremental(pieces: list[bytes]) -> list[bytes]:
    """The same as the bytes come."""
    found: list[bytes] = []
    kept = b""
    for piece in pieces:
        kept += piece
        *whole, kept = kept.split(b"\n\n")
        for block in whole:
            found += naive([block + b"\n\n"])
    return found


def ours(pieces: list[bytes]) -> list[bytes]:
    decoder = SseDecoder()
    return [event.data for piece in pieces for event in decoder.decode(piece)]


def naive_encode(data: bytes) -> bytes:
    return b"".join(b"data: " + line + b"\n" for line in LINES.split(data)) + b"\n"


def rows() -> Iterator[Row]:
    whole = [STREAM]
    cut = [STREAM[at : at + PIECE] for at in range(0, len(STREAM), PIECE)]
    same(ours(whole), naive(whole))
    same(ours(cut), naive_incremental(cut))
    yield compare("sse: one of 50 events that came at once", lambda: ours(whole), lambda: naive(whole),
                  against="splitter", operations=50)  # fmt: skip
    yield compare(f"sse: one of 50 events in pieces of {PIECE} bytes", lambda: ours(cut),
                  lambda: naive_incremental(cut), against="incremental splitter", operations=50)  # fmt: skip
    same(SseDecoder().decode(encode_event(PAYLOADS[0]))[0].data, PAYLOADS[0])
    yield compare("sse: write an event", lambda: encode_event(PAYLOADS[0]), lambda: naive_encode(PAYLOADS[0]),
                  against="join of lines")  # fmt: skip


if __name__ == "__main__":
    show(rows())
