"""What a proxy may answer to CONNECT."""

from __future__ import annotations

import pytest

from headgate.net.tunnel import MAX_HEAD, TunnelError, fault_of, request_for

GOOD = [
    b"HTTP/1.1 200 Connection established\r\n\r\n",
    b"HTTP/1.0 200\r\nvia: x\r\n\r\n",
    b"HTTP/1.1 204 \r\n\r\n",
]
BAD = [
    (b"HTTP/1.1 407 Denied\r\n\r\n", "status 407"),
    (b"HTTP/1.1 101 Switching\r\n\r\n", "status 101"),
    (b"HTTP/1.1 2000 OK\r\n\r\n", "not HTTP"),
    (b"HTTP/2 200\r\n\r\n", "not HTTP"),
    (b"\r\n\r\n", "not HTTP"),
    (b"HTTP/1.1 200 OK\r\n\r\n\x16\x03", "data after its response"),
    (b"HTTP/1.1 200 OK\r\nx: " + b"y" * MAX_HEAD + b"\r\n\r\n", "more than 8192 bytes"),
    (b"x" * (MAX_HEAD + 1), "more than 8192 bytes"),
]


@pytest.mark.parametrize("answer", GOOD)
def test_what_opens_the_tunnel(answer: bytes) -> None:
    assert fault_of(answer, answer.find(b"\r\n\r\n")) is None


@pytest.mark.parametrize(("answer", "reason"), BAD)
def test_what_does_not(answer: bytes, reason: str) -> None:
    assert reason in str(fault_of(answer, answer.find(b"\r\n\r\n")))


def test_a_backend_that_speaks_first_is_heard() -> None:
    early = b"HTTP/1.1 200 OK\r\n\r\n\0\0\0\4"
    assert fault_of(early, early.find(b"\r\n\r\n"), speaks_first=True) is None


def test_the_request_has_the_headers_and_no_others() -> None:
    fields = [("proxy-authorization", "Basic x"), ("x-name", "M\u00fcller")]
    assert request_for("h:1", fields) == (
        b"CONNECT h:1 HTTP/1.1\r\nhost: h:1\r\nproxy-authorization: Basic x\r\nx-name: M\xc3\xbcller\r\n\r\n"
    )
    for name, value in (("x", "a\r\nevil: 1"), ("x: y\r\nz", "1"), ("x", "a\0"), ("", "x")):
        with pytest.raises(TunnelError, match="cannot have"):
            request_for("h:1", [(name, value)])
