"""TCP and TLS listeners: bytes that go to a backend as they come."""

from __future__ import annotations

import collections
import contextlib
import shutil
import signal
import socket
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.running import free_port
from tests.end_to_end.tcp_rig import (
    TlsStream,
    ask,
    client_context,
    connect,
    named,
    reset,
    reversed_at_the_end,
    tls_backend,
    whole,
)
from tests.end_to_end.tls_rig import authority, issue, tls_upstream  # noqa: F401

pytestmark = pytest.mark.warm

PLAIN = """
gateways:
  default: {port: {port}, protocol: TCP}
tcpRoutes:
- name: bytes
  backends: [{host: "127.0.0.1:BACKEND"}]
"""
BIG = bytes(range(256)) * 40_000


def test_bytes_go_both_ways_and_each_end_is_passed_on(gateway, upstream) -> None:
    running = gateway(PLAIN.replace("BACKEND", str(upstream(reversed_at_the_end))))
    for data in (b"", b"a", BIG):
        assert ask(running.port, data) == data[::-1]
    labels = f'{{bind="bind/{running.port}",gateway="default/default",listener="default",protocol="tcp"}}'
    running.wait_metric(f"gw_downstream_received_bytes_total{labels}", len(BIG) + 1)
    assert running.metric(f"gw_downstream_sent_bytes_total{labels}") == len(BIG) + 1
    assert running.metric(f"gw_downstream_connections_total{labels}") == 3
    running.wait_log(f"bytes.received={len(BIG)} bytes.sent={len(BIG)} protocol=tcp")
    line = next(line for line in running.log().splitlines() if "bytes.received=1 " in line)
    assert "gateway=default/default listener=default route=default/bytes endpoint=127.0.0.1:" in line
    assert f"dst.addr=127.0.0.1:{running.port}" in line
    assert "http." not in line
    assert "error=" not in line
    _, page = running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")
    assert '"tcpRoutes"' in page


def test_a_backend_may_speak_first_and_end_first(gateway, upstream) -> None:
    asked: list[bytes] = []

    def ends_first(connection: socket.socket) -> None:
        connection.sendall(b"hello")
        connection.shutdown(socket.SHUT_WR)
        asked.append(whole(connection))

    running = gateway(PLAIN.replace("BACKEND", str(upstream(ends_first))))
    with connect(running.port) as sock:
        assert whole(sock) == b"hello"
        sock.sendall(b"still here")
        sock.shutdown(socket.SHUT_WR)
        running.wait_log("bytes.received=10 bytes.sent=5")
    assert asked == [b"still here"]


def test_a_side_that_breaks_off_has_the_other_one_reset(gateway, upstream) -> None:
    seen = threading.Event()

    def script(connection: socket.socket) -> None:
        if connection.recv(1) == b"r":
            reset(connection)
            return
        try:
            connection.recv(100)
        except ConnectionResetError:
            seen.set()

    running = gateway(PLAIN.replace("BACKEND", str(upstream(script))))
    with connect(running.port) as sock:
        sock.sendall(b"r")
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
    running.wait_log("error=\"upstream connection lost: [Errno 104] Connection reset by peer\" reason=UpstreamFailure")
    sock = connect(running.port)
    sock.sendall(b"c")
    running.wait_metric("gw_downstream_received_bytes_total", 2)
    reset(sock)
    running.wait_log("client connection lost")
    assert seen.wait(60)


def test_what_is_slow_stops_the_other_side(gateway, upstream) -> None:
    go = threading.Event()
    sizes: list[int] = []

    def slow(connection: socket.socket) -> None:
        go.wait(60)
        sizes.append(len(whole(connection)))
        connection.sendall(BIG)

    running = gateway(PLAIN.replace("BACKEND", str(upstream(slow))))
    with connect(running.port) as sock:
        sock.setblocking(False)
        sent = 0
        quiet = 0
        while quiet < 50:                       # until nothing more fits into what lies between
            try:
                sent += sock.send(b"x" * 65536)
                quiet = 0
            except BlockingIOError:
                quiet += 1
                threading.Event().wait(0.01)
        assert sent < 64_000_000, "the gateway keeps what the backend does not take"
        go.set()
        sock.settimeout(60)
        sock.shutdown(socket.SHUT_WR)
        assert whole(sock) == BIG
        assert sizes == [sent]


CHOICE = """
gateways:
  default: {port: {port}, protocol: TCP}
  none: {port: NONE, protocol: TCP}
  gone: {port: GONE, protocol: TCP}
  late: {port: LATE, protocol: TCP}
  service: {port: SERVICE, protocol: TCP}
  empty: {port: EMPTY, protocol: TCP}
tcpRoutes:
- name: weighted
  backends:
  - {host: "127.0.0.1:A", weight: 3}
  - {backend: b}
  - {host: "127.0.0.1:1", weight: 0}
- {name: nobody, gateways: none, backends: [{host: "127.0.0.1:1", weight: 0}]}
- {name: gone, gateways: gone, backends: [{host: "127.0.0.1:REFUSED"}]}
- {name: late, gateways: late, backends: [{backend: late}]}
- {name: service, gateways: service, backends: [{service: {name: ns/db.test, port: 5432}}]}
backends:
- {name: b, host: "127.0.0.1:B"}
- name: late
  host: "127.0.0.1:FULL"
  policies: {tcp: {connectTimeout: 300ms, keepalives: {enabled: true, time: 60s, interval: 10s, retries: 3}}}
services: [{name: db, namespace: ns, hostname: db.test, ports: {"5432": 5432}}]
workloads:
- {uid: bad, name: bad, namespace: ns, workloadIps: [127.0.0.1], services: {ns/db.test: {"5432": REFUSED}}}
- {uid: good, name: good, namespace: ns, workloadIps: [127.0.0.1], services: {ns/db.test: {"5432": A}}}
"""


def test_backends_are_chosen_and_failures_are_told(gateway, upstream) -> None:
    ports = {name: free_port() for name in ("NONE", "GONE", "LATE", "SERVICE", "EMPTY", "REFUSED")}
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    waiting = [socket.socket() for _ in range(4)]
    for one in waiting:
        one.setblocking(False)
        one.connect_ex(full.getsockname())      # more than its queue holds: the next SYN is not answered
    text = CHOICE.replace("FULL", str(full.getsockname()[1]))
    for name, port in ports.items():
        text = text.replace(name, str(port))
    a, b = upstream(named(b"a")), upstream(named(b"b"))
    running = gateway(text.replace('127.0.0.1:A"', f'127.0.0.1:{a}"').replace('127.0.0.1:B"', f'127.0.0.1:{b}"')
                      .replace(": A}", f": {a}}}"))
    found = collections.Counter(ask(running.port, b"") for _ in range(60))
    assert set(found) == {b"a\n", b"b\n"}
    assert found[b"a\n"] > found[b"b\n"]
    for name, error in (
        ("NONE", 'error="no valid backends" reason=NoHealthyBackend'),
        ("GONE", 'error="upstream call failed: Connection refused" reason=UpstreamFailure'),
        ("LATE", 'error="upstream call timeout" reason=Timeout'),
        ("EMPTY", 'error="route not found" reason=NotFound'),
    ):
        with pytest.raises(ConnectionResetError):
            ask(ports[name], b"x")
        running.wait_log(error)
    # Both endpoints are tried before a connection fails.
    assert {ask(ports["SERVICE"], b"") for _ in range(20)} == {b"a\n"}
    for one in (full, *waiting):
        one.close()


@pytest.mark.skipif(not shutil.which("redis-server"), reason="needs redis-server and redis-cli")
def test_redis(gateway, tmp_path: Path) -> None:
    port = free_port()
    server = subprocess.Popen(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)],
        stdout=subprocess.DEVNULL,
    )
    try:
        running = gateway(PLAIN.replace("BACKEND", str(port)))

        def redis(*words: str) -> str:
            command = ["redis-cli", "-p", str(running.port), *words]
            return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout.strip()

        while redis("ping") != "PONG":
            pass
        assert redis("set", "k", "v" * 100_000) == "OK"
        assert redis("get", "k") == "v" * 100_000
        assert redis("--csv", "eval", "return {1,2,3}", "0") == "1,2,3"
    finally:
        server.terminate()
        server.wait(60)


TLS = """
binds:
- port: {port}
  listeners:
  - name: passed
    hostname: "*.pass.test"
    protocol: TLS
    tcpRoutes:
    - {name: a, hostnames: [a.pass.test], backends: [{host: "127.0.0.1:A"}]}
    - {name: others, hostnames: ["*.pass.test"], backends: [{host: "127.0.0.1:B"}]}
  - name: ended
    hostname: ended.test
    protocol: TLS
    tls: {cert: FOLDER/ended.pem, key: FOLDER/ended.key}
    tcpRoutes: [{name: plain, backends: [{host: "127.0.0.1:PLAIN"}]}]
  - name: again
    hostname: again.test
    protocol: TLS
    tls: {cert: FOLDER/again.pem, key: FOLDER/again.key}
    tcpRoutes:
    - name: secure
      policies: {backendTLS: {root: FOLDER/ca.pem, hostname: inner.test}}
      backends: [{host: "127.0.0.1:INNER"}]
  - name: web
    hostname: web.test
    protocol: HTTPS
    tls: {cert: FOLDER/web.pem, key: FOLDER/web.key}
    routes: [{policies: {directResponse: {status: 200, body: web}}}]
frontendPolicies: {accessLog: {add: {kind: proxy.route.kind, from: source.address, to: backend.protocol}}}
"""


def curl(running, folder: Path, host: str) -> str:
    place = f"{host}:{running.port}"
    command = ["curl", "-s", "--max-time", "60", "--cacert", str(folder / "ca.pem"), "--resolve", f"{place}:127.0.0.1"]
    done = subprocess.run([*command, f"https://{place}/"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else f"curl {done.returncode}"


def test_tls_is_passed_on_or_ended_by_the_name_in_the_handshake(gateway, upstream, authority, tmp_path) -> None:
    for name, host in (("ended", "ended.test"), ("again", "again.test"), ("web", "web.test")):
        issue(authority, tmp_path, name, host)
    inner = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("inner.test").configure_cert(inner)
    places = {
        "A": tls_upstream(authority, "a.pass.test"), "B": tls_upstream(authority, "x.y.pass.test"),
        "PLAIN": upstream(reversed_at_the_end),
    }  # fmt: skip
    with tls_backend(inner) as places["INNER"]:
        text = TLS.replace("FOLDER", str(tmp_path))
        for name, port in places.items():
            text = text.replace(f'127.0.0.1:{name}"', f'127.0.0.1:{port}"')
        running = gateway(text)
        # The certificates are those of the backends.
        assert curl(running, tmp_path, "a.pass.test") == f"secure a.pass.test:{running.port}"
        assert curl(running, tmp_path, "x.y.pass.test") == f"secure x.y.pass.test:{running.port}"
        assert curl(running, tmp_path, "web.test") == "web"
        assert curl(running, tmp_path, "pass.test") == "curl 35"
        for name in ("ended.test", "again.test"):
            for data in (b"abc", BIG):
                with connect(running.port) as sock:
                    stream = TlsStream(sock, client_context(tmp_path), name)
                    assert stream.tls.selected_alpn_protocol() is None
                    stream.send(data)
                    stream.end_output()
                    assert stream.whole() == data[::-1]
        running.wait_log("tls.sni=again.test protocol=tcp")
        line = next(line for line in running.log().splitlines() if "tls.sni=a.pass.test" in line)
        assert "listener=passed route=default/a" in line
        assert "kind=TLSRoute from=127.0.0.1 to=tcp" in line
        labels = f'{{bind="bind/{running.port}",gateway="default/default",listener='
        assert running.metric(f'gw_downstream_connections_total{labels}"passed",protocol="tls"}}') == 2
        assert running.metric(f'gw_downstream_connections_total{labels}"ended",protocol="tls"}}') == 2
        assert running.metric(f'gw_downstream_connections_total{labels}"web",protocol="https"}}') == 1
        assert running.metric(f'gw_tls_handshake_duration_seconds_count{labels}"ended",protocol="tls"}}') == 2


@contextlib.contextmanager
def telling_backend(authority) -> Iterator[int]:
    """A TLS server that sends the protocol that it has chosen of those that it was offered."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("inner.test").configure_cert(context)
    context.set_alpn_protocols(["h2", "postgresql", "http/1.1"])

    class Teller(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with context.wrap_socket(self.request, server_side=True) as secured:
                secured.sendall(str(secured.selected_alpn_protocol()).encode())
                secured.unwrap()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Teller) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()


@pytest.mark.parametrize(
    ("alpn", "chosen"),
    [("[postgresql]", b"postgresql"), ("[x, http/1.1, postgresql]", b"postgresql"), ("[h2]", b"h2"), ("[]", b"None"), (None, b"None")],
)
def test_a_backend_is_offered_the_protocols_of_alpn(gateway, authority, tmp_path, alpn: str | None, chosen: bytes) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    offered = "" if alpn is None else f", alpn: {alpn}"
    with telling_backend(authority) as port:
        text = PLAIN.replace("BACKEND", str(port))
        running = gateway(f"{text}  policies: {{backendTLS: {{root: {tmp_path}/ca.pem, hostname: inner.test{offered}}}}}\n")
        with connect(running.port) as sock:
            assert whole(sock) == chosen


def test_a_hello_in_small_pieces_is_passed_on_whole(gateway, authority, tmp_path) -> None:
    text = """
gateways:
  default: {port: {port}, protocol: TLS}
tcpRoutes: [{name: all, backends: [{host: "127.0.0.1:BACKEND"}]}]
"""
    running = gateway(text.replace("BACKEND", str(tls_upstream(authority, "any.test"))))
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_context(tmp_path).wrap_bio(into, out, server_hostname="any.test")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    hello = out.read()
    with connect(running.port) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(hello)):
            sock.sendall(hello[at : at + 1])
        while not into.pending:
            into.write(sock.recv(65536))
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                into.write(sock.recv(65536))
        assert tls.getpeercert()["subjectAltName"] == (("DNS", "any.test"),)
    # The name may be missing, then only a listener without one fits.
    context = client_context(tmp_path)
    context.check_hostname = False
    with connect(running.port) as sock:
        assert TlsStream(sock, context, None).tls.getpeercert()["subjectAltName"] == (("DNS", "any.test"),)


def test_a_reload_and_a_removed_port_cut_no_connection(gateway, upstream) -> None:
    first, second = upstream(named(b"first")), upstream(named(b"second"))
    running = gateway(PLAIN.replace("BACKEND", str(first)))
    with connect(running.port) as sock:
        assert sock.recv(6) == b"first\n"
        running.reload(PLAIN.replace("BACKEND", str(second)))
        with connect(running.port) as other:
            assert other.recv(7) == b"second\n"
        sock.sendall(b"still")
        assert sock.recv(5) == b"still"
        running.reload(PLAIN.replace("BACKEND", str(second)).replace("port: {port}", f"port: {running.spare}"))
        sock.sendall(b"there")
        assert sock.recv(5) == b"there"


@pytest.mark.cold
def test_a_drain_waits_for_connections_and_then_breaks_them_off(gateway, upstream) -> None:
    running = gateway(PLAIN.replace("BACKEND", str(upstream(named(b"x")))), settings="connectionTerminationDeadline: 2s")
    with connect(running.port) as sock, connect(running.port) as other:
        assert (sock.recv(2), other.recv(2)) == (b"x\n", b"x\n")
        running.process.send_signal(signal.SIGTERM)
        running.wait_log("draining")
        sock.sendall(b"still")
        assert sock.recv(5) == b"still"
        sock.shutdown(socket.SHUT_WR)
        assert whole(sock) == b""
        with pytest.raises(ConnectionResetError):
            other.recv(1)
        running.wait_log('error="the gateway shuts down"')
        assert running.process.wait(60) == 0
