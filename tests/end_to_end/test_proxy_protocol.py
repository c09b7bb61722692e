"""The PROXY protocol in front of HTTP, TLS and TCP: HAProxy and curl as load balancers, and clients that claim to be others."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import proxy_naive as naive
import pytest
from tests.end_to_end.running import free_port
from tests.end_to_end.tcp_rig import TlsStream, client_context, connect, named, whole
from tests.end_to_end.tls_rig import authority, issue  # noqa: F401

pytestmark = pytest.mark.warm

CONFIG = """
binds:
- port: {port}
  tunnelProtocol: proxy
  listeners:
  - routes:
    - policies:
        authorization: {rules: ['source.address != "192.0.2.66"']}
        directResponse: {status: 200, body: web}
- port: SECURE
  tunnelProtocol: proxy
  listeners:
  - name: web
    hostname: web.test
    protocol: HTTPS
    tls: {cert: FOLDER/web.pem, key: FOLDER/web.key}
    routes: [{policies: {directResponse: {status: 200, body: secure}}}]
  - {name: passed, hostname: passed.test, protocol: TLS, tcpRoutes: [{backends: [{host: "127.0.0.1:BACKEND"}]}]}
- port: BYTES
  tunnelProtocol: proxy
  listeners: [{protocol: TCP, tcpRoutes: [{backends: [{host: "127.0.0.1:BACKEND"}]}]}]
- port: DIRECT
  listeners: [{routes: [{policies: {directResponse: {status: 200, body: direct}}}]}]
frontendPolicies:
  accessLog: {add: {from: source.address, fromPort: source.port, raw: source.rawAddress, rawPort: source.rawPort}}
"""
ALL = """  networkAuthorization: {rules: ['source.rawAddress == "127.0.0.1"', {deny: 'source.address == "192.0.2.99"'}]}
  proxyProtocol: {version: all, mode: MODE}
"""
GET = b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n"
V1 = b"PROXY TCP4 192.0.2.7 127.0.0.1 4711 80\r\n"


class Ports:
    """A gateway with the configuration above. `more`: the end of its frontendPolicies."""

    def __init__(self, gateway, upstream, authority, folder: Path, more: str = "") -> None:
        issue(authority, folder, "web", "web.test")
        self.secure, self.bytes, self.direct = (free_port() for _ in range(3))
        self.text = CONFIG.replace("FOLDER", str(folder)).replace("BACKEND", str(upstream(named(b"db"))))
        for name, port in (("SECURE", self.secure), ("BYTES", self.bytes), ("DIRECT", self.direct)):
            self.text = self.text.replace(name, str(port))
        self.running = gateway(self.text + more)
        self.port = self.running.port


def asked(port: int, data: bytes) -> bytes:
    with connect(port) as sock:
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            return whole(sock)
        except OSError:
            return b""


def test_the_client_is_who_the_header_says(gateway, upstream, authority, tmp_path) -> None:
    ports = Ports(gateway, upstream, authority, tmp_path)
    running = ports.running
    with connect(ports.port) as sock:
        sock.sendall(naive.v2("192.0.2.8", 4712) + GET)
        assert whole(sock).endswith(b"web")
        raw = sock.getsockname()[1]
    running.wait_log(f"from=192.0.2.8 fromPort=4712 raw=127.0.0.1 rawPort={raw}")
    assert "src.addr=192.0.2.8:4712 bytes.received=0 bytes.sent=" in running.log()
    # Its own connections (health checks) keep their addresses.
    assert asked(ports.port, naive.v2("192.0.2.8", 1, command=0x20) + GET).endswith(b"web")
    running.wait_log("from=127.0.0.1")
    # Policies go by what the header says.
    assert b" 403 " in asked(ports.port, naive.v2("192.0.2.66", 1) + GET)
    # By default the other version is refused, and so is a connection without a header.
    for port in (ports.port, ports.bytes):
        assert asked(port, V1 + GET) == b""
        assert asked(port, GET) == b""
    running.wait_log("PROXY protocol header refused")
    assert 'error="version 1 is not accepted"' in running.log()
    assert 'error="there is none"' in running.log()
    running.wait_metric(f'gw_proxy_protocol_failures_total{{bind="bind/{ports.port}"}}', 2)
    # On a port without it a header is what anybody may write: a malformed request.
    assert asked(ports.direct, GET).endswith(b"direct")
    assert b" 400 " in asked(ports.direct, V1 + GET)
    with connect(ports.secure) as sock:
        sock.sendall(naive.v2("2001:db8::5", 99))
        stream = TlsStream(sock, client_context(tmp_path), "web.test")
        stream.send(GET.replace(b"a.test", b"web.test"))
        assert stream.whole().endswith(b"secure")
    running.wait_log("src.addr=[2001:db8::5]:99")
    # What goes on begins behind the header.
    assert asked(ports.bytes, naive.v2("192.0.2.9", 5) + b"abc") == b"db\nabc"
    running.wait_log("src.addr=192.0.2.9:5")
    _, page = running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")
    assert page.count('"tunnelProtocol":"proxy"') + page.count('"tunnelProtocol": "proxy"') == 3


@pytest.mark.parametrize("mode", ["strict", "optional"])
def test_settings_for_all_ports_and_who_may_send_headers(gateway, upstream, authority, tmp_path, mode: str) -> None:
    ports = Ports(gateway, upstream, authority, tmp_path, ALL.replace("MODE", mode))
    for port, answer in ((ports.port, b"web"), (ports.direct, b"direct")):
        assert asked(port, V1 + GET).endswith(answer)
        assert asked(port, naive.v2("192.0.2.8", 1) + GET).endswith(answer)
        assert asked(port, GET).endswith(answer if mode == "optional" else b"")
        assert asked(port, naive.v2("192.0.2.99", 1) + GET) == b"", "rules for connections go by the header"
        # Only the load balancer's own address may speak for others: rawAddress is the socket's.
        with socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.5", 0)) as sock:
            sock.settimeout(60)
            try:
                sock.sendall(naive.v2("127.0.0.1", 1) + GET)
                assert sock.recv(1) == b""
            except ConnectionError:
                pass
    if mode == "optional":
        assert asked(ports.bytes, b"PROXY") == b"db\nPROXY"
        # A client that waits for the backend to speak first sends nothing, and is not kept waiting for ever.
        with connect(ports.bytes) as sock:
            assert sock.recv(3) == b"db\n"


HAPROXY = """
defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
"""
LISTEN = """
listen l{port}
  bind 127.0.0.1:{port}
  server one 127.0.0.1:{to} {how}
"""


@contextlib.contextmanager
def haproxy(folder: Path, places: dict[int, tuple[int, str]]) -> Iterator[None]:
    path = folder / "haproxy.cfg"
    path.write_text(HAPROXY + "".join(LISTEN.format(port=port, to=to, how=how) for port, (to, how) in places.items()))
    process = subprocess.Popen(["haproxy", "-db", "-q", "-f", str(path)])
    try:
        for port in places:
            while True:
                with contextlib.suppress(OSError), connect(port):
                    break
                assert process.poll() is None
        yield
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.skipif(not shutil.which("haproxy"), reason="needs haproxy")
def test_haproxy_and_curl(gateway, upstream, authority, tmp_path) -> None:
    ports = Ports(gateway, upstream, authority, tmp_path, ALL.replace("MODE", "strict"))
    running = ports.running
    more = "send-proxy-v2-ssl-cn proxy-v2-options crc32c,unique-id"
    places = {
        free_port(): (ports.port, "send-proxy"),
        free_port(): (ports.port, "send-proxy-v2"),
        free_port(): (ports.port, more),
    }
    with haproxy(tmp_path, places):
        for port in places:
            with connect(port) as sock:
                sock.sendall(GET)
                assert whole(sock).endswith(b"web")
                running.wait_log(f"src.addr=127.0.0.1:{sock.getsockname()[1]}")
    done = subprocess.run(
        ["curl", "-s", "--max-time", "60", "--haproxy-protocol", f"http://127.0.0.1:{ports.port}/"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "web"
    running.wait_metric("gw_requests_total", 4)
