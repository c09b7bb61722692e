"""Connections that get no request through leave one line each: who it was and why."""

from __future__ import annotations

import socket
import ssl
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
