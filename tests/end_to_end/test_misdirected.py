"""Requests on connections of another listener: 421 (RFC 9110 section 15.5.20), as the Gateway API has it for HTTPS listeners.

https://gateway-api.sigs.k8s.io/reference/spec/#listener, `hostname`; conformance test HTTPRouteHTTPSListenerDetectMisdirectedRequests.
"""

from __future__ import annotations

import socket
import ssl

import httpx
import pytest
from tests.end_to_end.running import Gateway
from tests.end_to_end.tls_rig import authority, issue  # noqa: F401

pytestmark = pytest.mark.warm

NAMES = ("example.org", "second-example.org", "unknown-example.org", "*.wildcard.org")
CONFIG = """
gateways:
  default:
    port: {port}
    listeners:
    - {name: any, protocol: HTTPS, tls: {cert: FOLDER/site.pem, key: FOLDER/site.key}}
    - {name: second, hostname: second-example.org, protocol: HTTPS, tls: {cert: FOLDER/site.pem, key: FOLDER/site.key}}
    - {name: wildcard, hostname: "*.wildcard.org", protocol: HTTPS, tls: {cert: FOLDER/site.pem, key: FOLDER/site.key}}
    - {name: fourth, hostname: fourth-example.wildcard.org, protocol: HTTPS, tls: {cert: FOLDER/site.pem, key: FOLDER/site.key}}
routes:
- {name: one, gateways: [default/any], hostnames: [example.org], policies: {directResponse: {status: 200, body: one}}}
- {name: two, gateways: [default/second], policies: {directResponse: {status: 200, body: two}}}
- {name: three, gateways: [default/wildcard], policies: {directResponse: {status: 200, body: three}}}
- {name: four, gateways: [default/fourth], policies: {directResponse: {status: 200, body: four}}}
"""
# Server name of the handshake, host of the request, status and who answers.
CASES = (
    ("example.org", "example.org", 200, "one"),
    ("example.org", "EXAMPLE.org", 200, "one"),
    ("example.org", "second-example.org", 421, None),
    ("example.org", "unknown-example.org", 404, None),
    ("second-example.org", "second-example.org", 200, "two"),
    ("second-example.org", "example.org", 421, None),
    ("second-example.org", "unknown-example.org", 421, None),
    ("third-example.wildcard.org", "third-example.wildcard.org", 200, "three"),
    ("third-example.wildcard.org", "fifth-example.wildcard.org", 200, "three"),
    ("third-example.wildcard.org", "fourth-example.wildcard.org", 421, None),
    ("third-example.wildcard.org", "second-example.org", 421, None),
    ("third-example.wildcard.org", "unknown-example.org", 421, None),
    ("fourth-example.wildcard.org", "fourth-example.wildcard.org", 200, "four"),
    ("fourth-example.wildcard.org", "fifth-example.wildcard.org", 421, None),
    ("unknown-example.org", "example.org", 200, "one"),
    ("unknown-example.org", "unknown-example.org", 404, None),
    # Without a server name: the listener that has no host name.
    (None, "example.org", 200, "one"),
    (None, "second-example.org", 421, None),
)
# The same where no listener is for all names: what is nobody's is not found, and what cannot begin ends in the handshake.
NAMED = (
    ("second-example.org", "example.org", 404, None),
    ("second-example.org", "fourth-example.wildcard.org", 421, None),
    ("third-example.wildcard.org", "unknown-example.org", 404, None),
    ("third-example.wildcard.org", "fourth-example.wildcard.org", 421, None),
)


@pytest.fixture
def site(authority, tmp_path) -> ssl.SSLContext:
    found = authority.issue_cert(*NAMES)
    (tmp_path / "site.pem").write_bytes(b"".join(blob.bytes() for blob in found.cert_chain_pems))
    found.private_key_pem.write_to_path(tmp_path / "site.key")
    return ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))


def over_http1(running: Gateway, context: ssl.SSLContext, name: str | None, host: str) -> tuple[int, str]:
    context.check_hostname = name is not None
    with (
        socket.create_connection(("127.0.0.1", running.port), timeout=60) as sock,
        context.wrap_socket(sock, server_hostname=name) as secure,
    ):
        # The connection is not closed by a request that belongs elsewhere.
        secure.sendall(f"GET / HTTP/1.1\r\nhost: {host}\r\n\r\nGET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
        data = b""
        while more := secure.recv(65536):
            data += more
    first, _, second = data.decode().partition("HTTP/1.1 ")[2].partition("HTTP/1.1 ")
    assert first[:3] == second[:3]
    return int(second[:3]), second.partition("\r\n\r\n")[2]


def over_http2(running: Gateway, context: ssl.SSLContext, name: str | None, host: str) -> tuple[int, str]:
    assert name is not None
    with httpx.Client(verify=context, http1=False, http2=True) as client:
        answer = client.get(f"https://127.0.0.1:{running.port}/", headers={"host": host}, extensions={"sni_hostname": name})
        assert answer.http_version == "HTTP/2"
        return answer.status_code, answer.text


def told(running: Gateway, context: ssl.SSLContext, cases: tuple[tuple[str | None, str, int, str | None], ...]) -> None:
    for ask in (over_http1, over_http2):
        for name, host, status, body in cases:
            if name is None and ask is over_http2:
                continue  # httpx sends none only to addresses, which are not in the certificate
            found = ask(running, context, name, host)
            assert found[0] == status, (ask.__name__, name, host)
            assert body in (None, found[1]), (ask.__name__, name, host)


def test_what_belongs_to_another_listener(gateway, site: ssl.SSLContext, tmp_path) -> None:
    running = gateway(CONFIG.replace("FOLDER", str(tmp_path)))
    told(running, site, CASES)
    running.wait_log("http.status=421 ")


def test_what_belongs_to_nobody(gateway, site: ssl.SSLContext, tmp_path) -> None:
    text = CONFIG.replace("FOLDER", str(tmp_path))
    text = "\n".join(line for line in text.splitlines() if "name: any" not in line and "default/any" not in line)
    running = gateway(text)
    told(running, site, NAMED)
    with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
        over_http1(running, site, "example.org", "example.org")


def test_a_listener_alone_has_its_host_name_too(gateway, site: ssl.SSLContext, tmp_path) -> None:
    text = CONFIG.replace("FOLDER", str(tmp_path))
    others = ("any", "wildcard", "fourth")
    text = "\n".join(line for line in text.splitlines() if not any(f"name: {one}," in line or f"default/{one}]" in line for one in others))
    running = gateway(text)
    told(running, site, (("second-example.org", "second-example.org", 200, "two"), ("second-example.org", "example.org", 404, None)))
