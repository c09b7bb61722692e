"""Whatever the bytes: the peeks take exactly what the standard parser takes, and find the values that it finds."""

from __future__ import annotations

import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "oracles"), str(ROOT / "fuzz")]

from harness import corpus, mutated, run  # noqa: E402
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

NAMES = {name for table in (CHAT_FIELDS, USAGE_FIELDS, RPC_FIELDS) for path in table.values() for name in path}
PIECES = [f'"{name}":'.encode() for name in sorted(NAMES)]
PIECES += [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u00e9", b"\\ud800", b"\\u0065", b"true", b"false",
           b"null", b"NaN", b"-", b"0", b"1e9", b".5", b" ", b"\n", b"\0", b"\x1f", b"\xc3\xa9", b"\xed\xa0\x80",
           b"\xff", b"{}", b'"a"', b"1", b"\xf0\x9f\x98\x80", b"aaaaaaaaaaaaaaaa"]  # fmt: skip


def string_at(parsed: Full, *path: str) -> str | None:
    return next((value for value in parsed.at(path) if isinstance(value, str)), None)


def check(data: bytes, _: random.Random) -> None:
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
    assert rpc.string("method") == string_at(parsed, "method")
    assert rpc.string("params", "name") == string_at(parsed, "params", "name")
    assert chat.stream is any(value is True for value in parsed.at(("stream",)))
    assert chat.include_usage is any(value is True for value in parsed.at(("stream_options", "include_usage")))


def main() -> None:
    known = corpus(__file__)
    run(__doc__, lambda source: mutated(source.choice(known), PIECES, source), check, known)


if __name__ == "__main__":
    main()
