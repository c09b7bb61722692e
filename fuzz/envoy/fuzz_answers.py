"""Answers of services that speak Envoy's protocols are read as the protobuf library reads them, and what it refuses is no answer."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz"), str(ROOT / "tests" / "oracles")]

from envoy.service.auth.v3.external_auth_pb2 import CheckResponse  # noqa: E402
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingResponse  # noqa: E402
from envoy.service.ratelimit.v3.rls_pb2 import RateLimitResponse  # noqa: E402
from envoy_library import allows, found_in_answer, found_in_limit, limit_answer, processor_answer  # noqa: E402
from google.protobuf.message import DecodeError  # noqa: E402
from harness import corpus, mutated, run  # noqa: E402

from headgate_drivers.http2 import response_of  # noqa: E402
from headgate_engine.context.headers import MessageHead  # noqa: E402
from headgate_engine.context.request import make_context  # noqa: E402
from headgate_engine.envoy.check import read_allowance  # noqa: E402
from headgate_engine.envoy.limits import read_limit_answer  # noqa: E402
from headgate_engine.envoy.processing import read_answer  # noqa: E402

# Keys of fields 1 to 8 with a length, varints, lengths, names of fields.
PIECES = [*(bytes([number << 3 | 2]) for number in range(1, 9)), b"\x08\x01", b"\x10\x7f", b"\x12\x00", b"\x0a\x02\x0a\x00", b"\x7f",
          b"\x80\x01", b"\xff" * 9 + b"\x01", b"\x0b", b"\x0c", b"\x0d\0\0\0\0", b"\x09\0\0\0\0\0\0\0\0", b"x-a", b":path", b":status",
          b"host", b"200", b"\r\n", b"\xc3\xbc", b"\xed\xa0\x80"]  # fmt: skip


def by_library(kind: Any, message: bytes) -> Any:
    """The message, None if the library refuses it."""
    try:
        return kind.FromString(message)
    except DecodeError:
        return None


def known(message: Any) -> bytes:
    """What the library knows of a message, encoded anew."""
    found = type(message)()
    found.CopyFrom(message)
    found.DiscardUnknownFields()
    return bytes(found.SerializeToString())


def has_unknown(message: Any) -> bool:
    """The library passes over groups with fields of the number 0 in what it does not know; here they make a message malformed."""
    return len(known(message)) != len(message.SerializeToString())


def check_processor(message: bytes) -> None:
    """A processor's answer: as the library reads it, and its edits can be made to any head."""
    expected = by_library(ProcessingResponse, message)
    if expected is not None:
        assert found_in_answer(read_answer(known(expected))) == processor_answer(expected), message
    try:
        answer = read_answer(message)
    except ValueError:
        assert expected is None or has_unknown(expected), message
        return
    # What is not read is not looked at: metadata, modes and answers of its own (the session's library does), trailers of a head.
    if expected is not None:
        wanted = processor_answer(expected)
        assert found_in_answer(answer)[:-1] == wanted[:-1], message
        assert answer.more or not wanted[-1], message
    answer.edit_request(make_context("GET", "/p", "a.test", [("x-a", "1")]).request)
    answer.edit_response(response_of([(b":status", b"200"), (b"x-a", b"1")]))
    answer.edit_trailers(MessageHead())


def check_limit(message: bytes) -> None:
    """An answer of a rate limit service: what the library takes is read as it reads it."""
    expected = by_library(RateLimitResponse, message)
    if expected is not None:
        assert found_in_limit(known(expected)) == limit_answer(expected), message
    try:
        answer = read_limit_answer(message)
    except ValueError:
        assert expected is None or has_unknown(expected), message
        return
    assert expected is None or found_in_limit(message) == limit_answer(expected), message
    answer.edit_request(make_context("GET", "/p", "a.test", [("x-a", "1")]).request)
    assert all(name == name.lower() for name, _ in answer.told)


def check_allowance(message: bytes) -> None:
    """What is taken for an allowance is one for the library as well."""
    allowance = read_allowance(message)
    if allowance is not None:
        assert allows(CheckResponse.FromString(message)), message
        allowance.apply(make_context("GET", "/p", "a.test", [("x-a", "1")]))


def check(message: bytes, _: random.Random) -> None:
    """One message, to each reader."""
    check_processor(message)
    check_limit(message)
    check_allowance(message)


def make(source: random.Random) -> bytes:
    """One or two of the corpus, spoilt: fields of a message that comes twice are merged."""
    return mutated(b"".join(source.choices(CORPUS, k=source.randint(1, 2))), PIECES, source)


CORPUS = corpus(__file__)

if __name__ == "__main__":
    run(__doc__, make, check, CORPUS)
