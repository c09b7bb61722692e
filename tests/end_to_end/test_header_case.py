"""The case of header names between HTTP/1.1 peers (`frontendPolicies.http.http1HeaderCase`)."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.warm

CONFIG = """
    frontendPolicies: {http: %s}
    gateways: {default: {port: {port}}}
    routes:
    - policies: {requestHeaderModifier: {set: {X-Set: "1"}}}
      backends: [{host: "127.0.0.1:%d"}]
"""
REQUEST = (
    b"POST /a HTTP/1.1\r\nHost: A.test\r\nX-Request-ID: 7\r\nx-lower: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
    b"1\r\na\r\n0\r\nX-Sum: 9\r\n\r\n"
)
RESPONSE = b"HTTP/1.1 200 OK\r\nX-Answer: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\nX-End: 2\r\n\r\n"


@pytest.mark.parametrize(
    ("setting", "kept"), [("{}", False), ("{http1HeaderCase: lowercase}", False), ("{http1HeaderCase: preserve}", True)]
)
def test_the_case_of_names(
    gateway: Callable[..., Any], upstream: Callable[..., int], send_raw: Callable[..., bytes], setting: str, kept: bool
) -> None:
    arrived: list[bytes] = []

    def script(connection: socket.socket) -> None:
        data = b""
        while b"\r\n0\r\n" not in data or not data.endswith(b"\r\n\r\n"):
            data += connection.recv(65536)
        arrived.append(data)
        connection.sendall(RESPONSE)
        connection.recv(1)

    running = gateway(CONFIG % (setting, upstream(script)))
    found = send_raw(running.port, REQUEST.replace(b"Host: A.test", b"Host: A.test\r\nConnection: close"))
    for name, where in ((b"X-Request-ID: 7", arrived[0]), (b"X-Sum: 9", arrived[0]), (b"X-Answer: 1", found), (b"X-End: 2", found)):
        wanted, other = (name, name.lower()) if kept else (name.lower(), name)
        assert b"\r\n" + wanted + b"\r\n" in where
        assert other not in where
    assert b"\r\nx-lower: a\r\n" in arrived[0]
    assert b"\r\nx-set: 1\r\n" in arrived[0].lower()
