"""`frontendPolicies.networkExtAuthz`: a service decides about connections, before they carry anything."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.end_to_end.ext_authz_rig import GrpcAuthorizer, HttpAuthorizer
from tests.end_to_end.running import free_port
from tests.end_to_end.tcp_rig import TlsStream, client_context, named, whole
from tests.end_to_end.tls_rig import authority, issue  # noqa: F401

pytestmark = pytest.mark.warm

PORTS = """
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
  - name: ended
    hostname: "*.raw.test"
    protocol: TLS
    tls: {cert: FOLDER/raw.pem, key: FOLDER/raw.key}
    tcpRoutes: [{backends: [{host: "127.0.0.1:BACKEND"}]}]
frontendPolicies:
  networkExtAuthz: POLICY
"""
HELLO = b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n"
DENIED = {"status": {"code": 7}}
ERROR = 'error="network external authorization failed'


@pytest.fixture
def service() -> Iterator[GrpcAuthorizer]:
    found = GrpcAuthorizer()
    yield found
    found.stop()


class Ports:
    """A gateway with a port for HTTP, one for TCP and one for TLS."""

    def __init__(self, gateway: Any, upstream: Any, authority: Any, folder: Path) -> None:
        for name in ("web", "raw"):
            issue(authority, folder, name, f"*.{name}.test")
        self.tcp, self.secure = free_port(), free_port()
        self._authority, self._folder = authority, folder
        text = PORTS.replace("FOLDER", str(folder)).replace("BACKEND", str(upstream(named(b"db"))))
        self._text = text.replace("TCP\n", f"{self.tcp}\n", 1).replace("SECURE", str(self.secure))
        self._gateway = gateway
        self.running: Any = None

    def start(self, more: str = "", **policy: Any) -> Any:
        text = self._text.replace("POLICY", json.dumps(policy)) + more
        self.running = self._gateway(text)
        return self.running

    def plain(self, data: bytes = HELLO, port: int | None = None, source: str = "127.0.0.1") -> bytes:
        """What comes for some bytes; nothing if the connection ends."""
        with socket.create_connection(("127.0.0.1", port or self.running.port), source_address=(source, 0)) as sock:
            sock.settimeout(60)
            try:
                sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
                return whole(sock)
            except OSError:
                return b""

    def tls(self, host: str, data: bytes) -> bytes:
        context = client_context(self._folder)
        self._authority.issue_cert("c.test", common_name="y").configure_cert(context)
        with socket.create_connection(("127.0.0.1", self.secure)) as sock:
            sock.settimeout(60)
            try:
                stream = TlsStream(sock, context, host)
                stream.send(data.replace(b"a.test", host.encode()))
                if data != HELLO:
                    stream.end_output()
                return stream.whole()
            except (OSError, ssl.SSLError):
                return b""


@pytest.fixture
def ports(gateway: Any, upstream: Any, authority: Any, tmp_path: Path) -> Ports:
    return Ports(gateway, upstream, authority, tmp_path)


def at(service: GrpcAuthorizer | HttpAuthorizer, **more: Any) -> dict[str, Any]:
    return {"host": f"127.0.0.1:{service.port}", **more}


def test_what_the_service_is_asked(ports: Ports, service: GrpcAuthorizer) -> None:
    options = {"context": {"place": "edge"}, "metadata": {"more": '{"from": source.address}'}}
    running = ports.start(**at(service, protocol={"grpc": options}))
    assert ports.plain().endswith(b"web")
    assert ports.plain(b"x", ports.tcp, "127.0.0.2") == b"db\nx"
    assert ports.tls("a.web.test", HELLO).endswith(b"secure")
    web, tcp, secure = (question["attributes"] for question in service.seen)
    assert web["source"]["address"]["socket_address"]["address"] == "127.0.0.1"
    assert web["destination"]["address"]["socket_address"]["port_value"] == running.port
    assert web["context_extensions"] == {"place": "edge"}
    assert web["metadata_context"]["filter_metadata"] == {"more": {"from": "127.0.0.1"}}
    assert set(web["request"]) == {"time"}, "there is no request yet"
    assert tcp["source"]["address"]["socket_address"]["address"] == "127.0.0.2"
    assert tcp["destination"]["address"]["socket_address"]["port_value"] == ports.tcp
    assert "tls_session" not in tcp
    assert secure["tls_session"] == {"sni": "a.web.test"}
    assert "certificate" in secure["source"]
    running.wait_metric('gw_upstream_call_duration_seconds_count{kind="Policy",subtype="ExtAuthz"}', 3)


def test_a_connection_is_asked_about_once(ports: Ports, service: GrpcAuthorizer) -> None:
    running = ports.start(**at(service))
    with httpx.Client() as client:
        assert [client.get(running.url).text for _ in range(3)] == ["web"] * 3
    with httpx.Client(http1=False, http2=True) as client:
        assert [client.get(running.url).text for _ in range(3)] == ["web"] * 3
    assert len(service.seen) == 2


def test_a_refused_connection_ends_without_an_answer(ports: Ports, service: GrpcAuthorizer) -> None:
    running = ports.start(**at(service))
    service.react = lambda question: DENIED
    assert ports.plain() == b""
    assert ports.plain(b"x", ports.tcp) == b""
    assert ports.tls("a.web.test", HELLO) == b""
    assert ports.tls("a.raw.test", b"x") == b""
    running.wait_log_count(ERROR + '" reason=ExtAuth', 4)
    running.wait_log("tls.sni=a.raw.test")
    for port, count in ((running.port, 1), (ports.tcp, 1), (ports.secure, 2)):
        running.wait_metric(f'gw_downstream_refused_total{{bind="bind/{port}"', count)
    service.react = lambda question: {}
    assert ports.plain().endswith(b"web")
    assert ports.tls("a.raw.test", b"x") == b"db\nx"


def test_rules_come_first(ports: Ports, service: GrpcAuthorizer) -> None:
    rules = """  networkAuthorization: {rules: [{deny: 'source.address == "127.0.0.3"'}, 'true']}\n"""
    ports.start(rules, **at(service))
    assert ports.plain(source="127.0.0.3") == b""
    assert service.seen == []
    assert ports.plain().endswith(b"web")
    assert len(service.seen) == 1


@pytest.mark.parametrize("mode", [None, "deny", "allow"])
def test_a_service_that_is_away(ports: Ports, mode: str | None) -> None:
    policy = {"host": f"127.0.0.1:{free_port()}"} | ({} if mode is None else {"failureMode": mode})
    running = ports.start(**policy)
    allowed = mode == "allow"
    assert ports.plain().endswith(b"web") == allowed
    assert ports.plain(b"x", ports.tcp) == (b"db\nx" if allowed else b"")
    if not allowed:
        running.wait_log_count(ERROR + ": ", 2)


@pytest.mark.parametrize("mode", ["deny", "allow"])
def test_a_service_that_hangs(ports: Ports, service: GrpcAuthorizer, mode: str) -> None:
    over = threading.Event()
    service.react = lambda question: {"status": {"code": 0 if over.wait(60) else 7}}
    running = ports.start(**at(service, failureMode=mode, policies={"http": {"requestTimeout": "300ms"}}))
    assert ports.plain().endswith(b"web") == (mode == "allow")
    assert ports.plain(b"x", ports.tcp) == (b"db\nx" if mode == "allow" else b"")
    over.set()
    assert running.process.poll() is None


def test_what_a_client_sends_meanwhile_waits(ports: Ports, service: GrpcAuthorizer) -> None:
    go_on, asked = threading.Event(), threading.Event()

    def react(question: dict[str, Any]) -> dict[str, Any]:
        asked.set()
        go_on.wait(60)
        return {}

    service.react = react
    running = ports.start(**at(service, policies={"http": {"requestTimeout": "60s"}}))
    body = os.urandom(60_000)  # no more: of a longer one that nobody reads the connection ends
    with socket.create_connection(("127.0.0.1", running.port)) as web, socket.create_connection(
        ("127.0.0.1", ports.tcp)
    ) as raw, socket.create_connection(("127.0.0.1", running.port)) as gone:
        gone.sendall(HELLO)
        gone.close()
        request = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(body)
        sending = threading.Thread(target=web.sendall, args=(request + body + HELLO,))
        sending.start()
        raw_sending = threading.Thread(target=lambda: (raw.sendall(body), raw.shutdown(socket.SHUT_WR)))
        raw_sending.start()
        assert asked.wait(60)
        go_on.set()
        web.settimeout(60)
        raw.settimeout(60)
        assert whole(raw) == b"db\n" + body
        assert whole(web).count(b"HTTP/1.1 200 OK") == 2
        sending.join()
        raw_sending.join()


def test_decisions_are_kept(ports: Ports, service: GrpcAuthorizer) -> None:
    ports.start(**at(service, cache={"key": ["source.address"], "ttl": "duration('1h')"}))
    assert ports.plain().endswith(b"web")
    service.react = lambda question: DENIED
    assert ports.plain().endswith(b"web")
    assert ports.plain(source="127.0.0.2") == b""
    assert ports.plain(source="127.0.0.2") == b""
    assert len(service.seen) == 2


def test_over_http(ports: Ports) -> None:
    service = HttpAuthorizer()
    http = {"path": '"/from/" + source.address', "addRequestHeaders": {"x-port": "string(destination.port)"}}
    running = ports.start(**at(service, protocol={"http": http}))
    assert ports.plain().endswith(b"web")
    [asked] = service.seen
    assert (asked.method, asked.target, asked.fields["x-port"]) == ("GET", "/from/127.0.0.1", str(running.port))
    service.status = 403
    assert ports.plain() == b""
    service.status = 204
    assert ports.plain() == b"", "200 alone allows"
    running.wait_log_count(ERROR + '" reason=ExtAuth', 2)
    service.stop()


def test_a_drain_does_not_wait_for_a_service(ports: Ports, service: GrpcAuthorizer) -> None:
    over, asked = threading.Event(), threading.Event()

    def react(question: dict[str, Any]) -> dict[str, Any]:
        asked.set()
        over.wait(60)
        return {}

    service.react = react
    running = ports.start(**at(service, policies={"http": {"requestTimeout": "60s"}}))
    with socket.create_connection(("127.0.0.1", running.port)) as sock:
        assert asked.wait(60)
        running.process.send_signal(signal.SIGTERM)
        sock.settimeout(60)
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""
        assert running.process.wait(60) == 0
    over.set()


