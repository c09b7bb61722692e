"""Connections that get no request through leave one line each: who it was and why."""

from __future__ import annotations

import socket
import ssl
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.running import PATIENCE, Gateway
from tests.end_to_end.tls_rig import (
    authority,  # noqa: F401
    issue,
)

pytestmark = pytest.mark.warm

SECURE = """
gateways:
  default:
    port: {port}
    listeners: [{name: a, protocol: HTTPS, tls: {cert: FOLDER/web.pem, key: FOLDER/web.key}}]
routes:
- policies: {directResponse: {status: 200, body: hi}}
"""
SHUT = """
frontendPolicies: {networkAuthorization: {rules: [{deny: "true"}]}}
gateways:
  default: {port: {port}}
routes:
- policies: {directResponse: {status: 200, body: hi}}
"""
OPEN = SHUT.split("\n", 2)[2]
HELLO = b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n"


@contextmanager
def connected(running: Gateway) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) as client:
        yield client


def the_line(running: Gateway, client: str) -> str:
    """The only line with the address of this client."""
    running.wait_log(f"src.addr={client} ")
    [line] = [line for line in running.log().splitlines() if f"src.addr={client} " in line]
    return line


def address(client: socket.socket) -> str:
    return f"127.0.0.1:{client.getsockname()[1]}"


def ended(client: socket.socket) -> None:
    """The gateway closes the connection without a word."""
    try:
        assert client.recv(65536) == b""
    except ConnectionResetError:
        pass


def test_failed_handshakes(gateway: Callable[..., Gateway], authority: Any, tmp_path: Path) -> None:
    issue(authority, tmp_path, "web", "a.test")
    running = gateway(SECURE.replace("FOLDER", str(tmp_path)))
    with connected(running) as client:
        name = address(client)
        client.sendall(HELLO)
        ended(client)
    line = the_line(running, name)
    assert "TLS handshake failed" in line
    assert 'reason=plain error="the client does not speak TLS"' in line
    with connected(running) as client:
        name = address(client)
        with pytest.raises(ssl.SSLCertVerificationError):
            ssl.create_default_context().wrap_socket(client, server_hostname="a.test")
    line = the_line(running, name)
    assert "TLS handshake failed" in line
    assert "tls.sni=a.test reason=alert" in line


def test_refused_connections(gateway: Callable[..., Gateway]) -> None:
    running = gateway(SHUT)
    with connected(running) as client:
        name = address(client)
        ended(client)
    assert 'error="network authorization failed" reason=Authorization' in the_line(running, name)


def test_a_client_that_offers_only_old_versions(gateway: Callable[..., Gateway], authority: Any, tmp_path: Path) -> None:
    issue(authority, tmp_path, "web", "a.test")
    running = gateway(SECURE.replace("FOLDER", str(tmp_path)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with connected(running) as client:
        name = address(client)
        with pytest.raises(ssl.SSLError):
            context.wrap_socket(client, server_hostname="a.test")
    line = the_line(running, name)
    assert "TLS handshake failed" in line
    assert "reason=version" in line, line


MALFORMED = [
    (b"GET / HTTP/1.1\r\nhost: a\r\nbad header\r\n\r\n", 400),
    (b"\x00\x01\x02\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
]


@pytest.mark.http1(reason="the bytes are HTTP/1.1")
@pytest.mark.parametrize(("sent", "status"), MALFORMED)
def test_malformed_requests(gateway: Callable[..., Gateway], sent: bytes, status: int) -> None:
    running = gateway(OPEN)
    with connected(running) as client:
        name = address(client)
        client.sendall(sent)
        assert client.recv(65536).startswith(b"HTTP/1.1 %d " % status)
    line = the_line(running, name)
    assert "\tinfo\t" in line
    assert f"request refused src.addr={name} http.status={status} reason=Malformed error=" in line


@pytest.mark.http1(reason="the bytes are HTTP/1.1")
def test_a_flood_of_malformed_requests_is_no_flood_of_lines(gateway: Callable[..., Gateway]) -> None:
    running = gateway(OPEN)
    began = time.monotonic()
    for _ in range(200):
        with connected(running) as client:
            client.sendall(MALFORMED[0][0])
            assert client.recv(65536).startswith(b"HTTP/1.1 400 ")
    running.wait_metric("gw_downstream_refused_total", 200)
    # Twenty in ten seconds, and the window may have begun before.
    running.wait_log("request refused")
    assert running.log().count("request refused") <= 20 * ((time.monotonic() - began) // 10 + 2)


@pytest.mark.http1(reason="the bytes are HTTP/1.1")
def test_a_request_that_breaks_in_its_body_has_one_line(gateway: Callable[..., Gateway], echo: int) -> None:
    running = gateway(OPEN.replace("policies: {directResponse: {status: 200, body: hi}}", f"backends: [{{host: '127.0.0.1:{echo}'}}]"))
    with connected(running) as client:
        name = address(client)
        # At once: the backend answers without a look at the body.
        client.sendall(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 400 ")
    assert "request refused" not in the_line(running, name)
