"""Who may connect, and TCP keepalive on both sides."""

from __future__ import annotations

import re
import socket
import ssl
from pathlib import Path

import pytest
from tests.end_to_end.running import free_port
from tests.end_to_end.tcp_rig import TlsStream, client_context, connect, named, whole
from tests.end_to_end.tls_rig import authority, issue  # noqa: F401

pytestmark = pytest.mark.warm

RULES = """
binds:
- port: {port}
  listeners: [{routes: [{policies: {directResponse: {status: 200, body: web}}}]}]
- port: TCP
  listeners: [{name: tcp, protocol: TCP, tcpRoutes: [{backends: [{host: "127.0.0.1:BACKEND"}]}]}]
- port: SECURE
  listeners:
  - name: web
    hostname: "*.web.test"
    protocol: HTTPS
    tls: {cert: FOLDER/web.pem, key: FOLDER/web.key, root: FOLDER/ca.pem}
    routes: [{policies: {directResponse: {status: 200, body: secure}}}]
  - name: passed
    protocol: TLS
    tcpRoutes: [{backends: [{host: "127.0.0.1:BACKEND"}]}]
frontendPolicies:
  networkAuthorization:
    rules:
    - 'cidr("127.0.0.0/30").containsIP(source.address)'
    - {deny: 'source.address == "127.0.0.3"'}
    - {require: 'destination.hostname != "b.web.test" || source.subjectCn == "x"'}
  accessLog: {add: {from: source.address}}
"""
HELLO = b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n"


def asked(port: int, source: str, data: bytes) -> bytes:
    """What comes for some bytes from an address of this machine; nothing if the connection ends."""
    with socket.create_connection(("127.0.0.1", port), source_address=(source, 0)) as sock:
        sock.settimeout(60)
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            return whole(sock)
        except OSError:
            return b""


def test_rules_are_asked_for_each_connection(gateway, upstream, authority, tmp_path) -> None:
    issue(authority, tmp_path, "web", "*.web.test")
    tcp, secure = free_port(), free_port()
    text = RULES.replace("FOLDER", str(tmp_path)).replace("BACKEND", str(upstream(named(b"db"))))
    running = gateway(text.replace("TCP\n", f"{tcp}\n", 1).replace("SECURE", str(secure)))
    for port, data, answer in ((running.port, HELLO, b"HTTP/1.1 200 OK"), (tcp, b"x", b"db\nx")):
        for source in ("127.0.0.1", "127.0.0.2"):
            assert asked(port, source, data).startswith(answer), source
        for source in ("127.0.0.3", "127.0.0.4"):
            assert asked(port, source, data) == b"", source
    running.wait_log('error="network authorization failed" reason=Authorization')
    running.wait_log("from=127.0.0.4")
    assert "src.addr=127.0.0.3:" in running.log()
    for port in (running.port, tcp):
        running.wait_metric(f'gw_downstream_refused_total{{bind="bind/{port}"', 2)

    def secured(host: str, source: str = "127.0.0.1") -> bytes:
        context = client_context(tmp_path)
        authority.issue_cert("c.test", common_name="y").configure_cert(context)
        with socket.create_connection(("127.0.0.1", secure), source_address=(source, 0)) as sock:
            sock.settimeout(60)
            try:
                stream = TlsStream(sock, context, host)
                stream.send(HELLO.replace(b"a.test", host.encode()))
                return stream.whole()
            except (OSError, ssl.SSLError):
                return b""

    # Behind the handshake: name and certificate are known.
    assert secured("a.web.test").endswith(b"secure")
    assert secured("b.web.test") == b""
    assert secured("a.web.test", "127.0.0.3") == b""
    running.wait_log("tls.sni=b.web.test")
    running.reload(re.sub(r"    - \{require.*\n", "", text.replace("TCP\n", f"{tcp}\n", 1).replace("SECURE", str(secure))))
    assert secured("b.web.test").endswith(b"secure")


ALIVE = """
gateways:
  default: {port: {port}, protocol: TCP}
tcpRoutes: [{backends: [{backend: far}]}]
backends:
- name: far
  host: "127.0.0.1:BACKEND"
  policies: {tcp: {connectTimeout: 5s, keepalives: {enabled: FAR, time: 77s, interval: 10s, retries: 3}}}
frontendPolicies:
  tcp: {keepalives: {enabled: NEAR, time: 55s, interval: 5s, retries: 2}}
"""


def timer(local: int, remote: int) -> tuple[int, float]:
    """Kind of the timer of a connection, and seconds until it is due (proc_net_tcp): 2 is keepalive."""
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if (fields[1][-4:], fields[2][-4:], fields[3]) == (f"{local:04X}", f"{remote:04X}", "01"):
                kind, due = fields[5].split(":")
                return int(kind, 16), int(due, 16) / 100
    raise AssertionError("there is no such connection")


@pytest.mark.parametrize("on", [True, False])
def test_keepalive_of_both_sides(gateway, upstream, on: bool) -> None:
    backend = upstream(named(b"x"))
    words = {True: "true", False: "false"}
    text = ALIVE.replace("BACKEND", str(backend)).replace("FAR", words[on]).replace("NEAR", words[on])
    running = gateway(text)
    with connect(running.port) as sock:
        assert sock.recv(2) == b"x\n"
        near = timer(running.port, sock.getsockname()[1])
        rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
        [far_port] = [int(row[1][-4:], 16) for row in rows if row[2][-4:] == f"{backend:04X}" and row[3] == "01"]
        far = timer(far_port, backend)
        if on:
            assert near[0] == far[0] == 2
            assert 5 < near[1] <= 55
            assert 55 < far[1] <= 77
        else:
            assert near[0] != 2
            assert far[0] != 2
