"""Messages of the SPIFFE Workload API, written by hand."""

from __future__ import annotations

import pytest

from headgate.dialect.workload_api import GivenSvid, given_svid, request


def field(number: int, data: bytes) -> bytes:
    assert len(data) < 128
    return bytes((number << 3 | 2, len(data))) + data


def test_the_first_svid_is_taken() -> None:
    first = field(1, b"spiffe://a/b") + field(2, b"chain") + field(3, b"key") + field(4, b"bundle") + field(5, b"hint")
    second = field(1, b"spiffe://a/c")
    federated = field(3, field(1, b"spiffe://other") + field(2, b"roots"))
    message = field(1, first) + field(2, b"crl") + federated + field(1, second) + field(15, b"what is not known yet")
    assert given_svid(message) == GivenSvid("spiffe://a/b", b"chain", b"key", b"bundle", {"spiffe://other": b"roots"})


@pytest.mark.parametrize(("message", "told"), [(b"", "has no X.509-SVID"), (b"\xff", "not an X509SVIDResponse"), (field(1, b"\x0a\x7f"), "not an X509SVIDResponse")])
def test_answers_without_one(message: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        given_svid(message)


def test_a_request_says_nothing() -> None:
    assert request() == b""
