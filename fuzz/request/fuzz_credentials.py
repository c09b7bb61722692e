"""Whatever the target, cookie and media type: what a location finds can be put and found again, and taking it leaves none of it."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from urllib.parse import parse_qsl

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz")]

from harness import corpus, mutated, run  # noqa: E402

from headgate_drivers.requests import is_media_type  # noqa: E402
from headgate_engine.context.request import RequestContext, make_context  # noqa: E402
from headgate_engine.steps.location import CredentialLocation  # noqa: E402

PIECES = [b"token", b"token=", b"=", b"&", b";", b"; ", b"%", b"%74oken=", b"+", b"?", b"\n", b" ", b"\t", b"Bearer ", b"bearer ",
          b'"', b",", b"application/json", b";charset=utf-8", b"a" * 50, b"%00", b"%zz", b"http://", b"[::1]", b":80"]  # fmt: skip
LINES = 5
QUERY = CredentialLocation("query", "token")
COOKIE = CredentialLocation("cookie", "token")
HEADER = CredentialLocation("header", "authorization", "Bearer ")


def request(data: bytes) -> RequestContext | None:
    """A request from five lines: target, authority, cookie, authorization, content type; None where it cannot be one."""
    lines = [line.decode("latin-1") for line in data.split(b"\n")]
    target, authority, cookie, credential, media = (lines + [""] * LINES)[:LINES]
    headers = [("cookie", cookie), ("authorization", credential), ("content-type", media)]
    try:
        return make_context("GET", target, authority, headers)
    except ValueError:           # UnicodeEncodeError is one
        return None


def media_type(text: str) -> str:
    return text.partition(";")[0].strip(" \t").translate({ord(c): ord(c) + 32 for c in map(chr, range(65, 91))})


def check(data: bytes, _: random.Random) -> None:
    """One input."""
    ctx = request(data)
    if ctx is None:
        return
    head = ctx.request
    assert head.target == head.path + ("?" + head.query if "?" in head.target else "")
    assert is_media_type(head, b"application/json") is (media_type(head.get("content-type") or "") == "application/json")
    found = [value for name, value in parse_qsl(head.query, keep_blank_values=True, encoding="latin-1") if name == "token"]
    taken = QUERY.take(ctx)
    assert taken == (found[0].encode("latin-1") or None if len(found) == 1 else None)
    for location in (COOKIE, HEADER):
        first = location.take(ctx)
        assert first is None or location.take(ctx) is None
    for location in (QUERY, COOKIE, HEADER):
        location.set(ctx, b"s3cret")
        assert location.take(ctx) == b"s3cret", location


def main() -> None:
    known = corpus(__file__)
    run(__doc__, lambda source: mutated(source.choice(known), PIECES, source), check, known)


if __name__ == "__main__":
    main()
