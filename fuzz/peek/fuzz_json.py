"""Whatever the bytes: the peeks take exactly what the standard parser takes, and find the values that it finds."""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "engine"), str(ROOT / "tests" / "oracles")]

from json_full import Full, full  # noqa: E402

from headgate_engine.peek.json import (  # noqa: E402
    CHAT_FIELDS,
    MAX_DEPTH,
    RPC_FIELDS,
    USAGE_FIELDS,
    ChatPeek,
    PeekError,
    RpcPeek,
    UsagePeek,
)

CORPUS = Path(__file__).parent / "corpus"
NAMES = {name for table in (CHAT_FIELDS, USAGE_FIELDS, RPC_FIELDS) for path in table.values() for name in path}
PIECES = [f'"{name}":'.encode() for name in sorted(NAMES)]
PIECES += [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u00e9", b"\\ud800", b"\\u0065", b"true", b"false",
           b"null", b"NaN", b"-", b"0", b"1e9", b".5", b" ", b"\n", b"\0", b"\x1f", b"\xc3\xa9", b"\xed\xa0\x80",
           b"\xff", b"{}", b'"a"', b"1", b"\xf0\x9f\x98\x80", b"aaaaaaaaaaaaaaaa"]  # fmt: skip


def mutated(data: bytes, source: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(source.randint(1, 5)):
        at = source.randint(0, len(found))
        kind = source.randrange(5)
        if kind == 0:
            found[at:at] = source.choice(PIECES)
        elif kind == 1:
            del found[at : at + source.randint(1, 8)]
        elif kind == 2 and found:
            found[at % len(found)] = source.randrange(256)
        elif kind == 3:
            other = source.randint(0, len(found))
            found[at:at] = found[min(at, other) : max(at, other)][:200]
        else:
            found[at : at + source.randint(1, 4)] = source.choice(PIECES)
    return bytes(found)


def string_at(parsed: Full, *path: str) -> str | None:
    return next((value for value in parsed.at(path) if isinstance(value, str)), None)


def check(data: bytes) -> None:
    """One input, all three peeks."""
    parsed = full(data)
    peeks = (ChatPeek(MAX_DEPTH), UsagePeek(MAX_DEPTH), RpcPeek(MAX_DEPTH))
    taken = []
    for peek in peeks:
        fault: PeekError | None = None
        try:
            peek.peek(data)
        except PeekError as error:
            fault = error
        taken.append(fault is None)
        assert fault is None or 0 <= fault.offset <= len(data)
    assert len(set(taken)) == 1
    assert taken[0] is (parsed is not None and parsed.depth <= MAX_DEPTH)
    if parsed is None or not taken[0]:
        return
    chat, usage, rpc = peeks
    assert chat.duplicate is parsed.duplicate(CHAT_FIELDS.values())
    assert usage.duplicate is parsed.duplicate(USAGE_FIELDS.values())
    assert rpc.duplicate is parsed.duplicate(RPC_FIELDS.values())
    assert chat.peek(data)[0] == usage.model == string_at(parsed, "model")
    assert rpc.method == string_at(parsed, "method")
    assert rpc.name == string_at(parsed, "params", "name")
    assert chat.stream is any(value is True for value in parsed.at(("stream",)))
    assert chat.include_usage is any(value is True for value in parsed.at(("stream_options", "include_usage")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    source = random.Random(seed)
    corpus = [path.read_bytes() for path in sorted(CORPUS.glob("*"))]
    for data in corpus:
        check(data)
    deadline = time.monotonic() + options.seconds
    runs = 0
    while time.monotonic() < deadline:
        data = mutated(source.choice(corpus), source)
        try:
            check(data)
        except BaseException:
            print(f"seed {seed}, input {data!r}", file=sys.stderr)
            raise
        runs += 1
    print(f"{runs} inputs, seed {seed}, nothing found")


if __name__ == "__main__":
    main()
