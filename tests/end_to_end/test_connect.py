"""CONNECT: refused, routed to a backend, or served by another port of the gateway."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest
from tests.end_to_end.running import free_port
from tests.end_to_end.tcp_rig import TlsStream, client_context, connect, named, reversed_at_the_end, whole
from tests.end_to_end.tls_rig import authority, issue, tls_upstream  # noqa: F401

pytestmark = pytest.mark.warm

GET = b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n"


def opened(port: int, authority_: str, more: bytes = b"", fields: str = "") -> tuple[socket.socket, bytes]:
    """A connection behind CONNECT, and the head of the answer. `more`: sent with it."""
    sock = connect(port)
    sock.sendall(f"CONNECT {authority_} HTTP/1.1\r\nhost: {authority_}\r\n{fields}\r\n".encode() + more)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        part = sock.recv(1)
        assert part, head
        head += part
    return sock, head


ROUTED = """
gateways:
  default: {port: {port}}
routes:
- name: db
  hostnames: [db.test]
  policies:
    authorization: {rules: ['request.method != "CONNECT" || request.headers["x-key"] == "k"']}
    responseHeaderModifier: {set: {x-route: db}}
  backends: [{host: "127.0.0.1:BACKEND"}]
- name: service
  hostnames: [service.test]
  backends: [{service: {name: ns/s.test, port: 1}}]
- {name: gone, hostnames: [gone.test], backends: [{host: "127.0.0.1:REFUSED"}]}
- {name: secure, hostnames: [secure.test], backends: [{host: "127.0.0.1:SECURE", policies: {backendTLS: {insecure: true}}}]}
- name: mcp
  hostnames: [mcp.test]
  backends: [{mcp: {targets: [{name: t, mcp: {host: "http://127.0.0.1:1/mcp"}}]}}]
- {name: direct, hostnames: [direct.test], policies: {directResponse: {status: 418, body: tea}}}
services: [{name: s, namespace: ns, hostname: s.test, ports: {"1": 1}}]
workloads: [{uid: w, name: w, namespace: ns, workloadIps: [127.0.0.1], services: {ns/s.test: {"1": BACKEND}}}]
frontendPolicies: {connect: {mode: route}, accessLog: {add: {path: request.path}}}
"""


def test_connect_takes_part_in_routing(gateway, upstream, authority, tmp_path) -> None:
    backend = upstream(named(b"db"))
    text = ROUTED.replace("BACKEND", str(backend)).replace("REFUSED", str(free_port()))
    running = gateway(text.replace("SECURE", str(tls_upstream(authority, "x.test"))))
    for name in ("db.test:5432", "service.test:1"):
        sock, head = opened(running.port, name, b"early", "x-key: k\r\n")
        with sock:
            assert head.startswith(b"HTTP/1.1 200 ")
            assert b"content-length" not in head
            assert b"transfer-encoding" not in head
            assert (b"x-route: db" in head) == (name == "db.test:5432")
            found = sock.recv(100)
            while len(found) < 8:
                found += sock.recv(100)
            assert found == b"db\nearly"
            sock.sendall(b"more" * 100_000)
            got = 0
            while got < 400_000:
                got += len(sock.recv(65536))
            sock.shutdown(socket.SHUT_WR)
            assert whole(sock) == b""
    running.wait_log("http.method=CONNECT http.host=db.test http.path=db.test:5432 http.version=HTTP/1.1 http.status=200")
    assert "path=/" in running.log()
    # The backend gets TLS, and what the client sends is inside.
    sock, head = opened(running.port, "secure.test:443", GET)
    with sock:
        assert b" 200 " in head
        assert b"secure a.test" in whole(sock)
    for name, status in (
        ("db.test:5432", b" 403 "), ("other.test:1", b" 404 "), ("gone.test:1", b" 503 "), ("mcp.test:1", b" 500 "),
        ("direct.test:1", b" 418 "),
    ):  # fmt: skip
        sock, head = opened(running.port, name)
        with sock:
            assert status in head, name
    assert running.fetch(f"{running.url}/")[0] == 404
    # curl's own tunnel.
    done = subprocess.run(
        ["curl", "-s", "--max-time", "60", "--proxytunnel", "--proxy", f"http://127.0.0.1:{running.port}",
         "http://secure.test:443/"], capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "secure secure.test:443"


def test_connect_over_http2(gateway, upstream) -> None:
    text = ROUTED.replace("BACKEND", str(upstream(reversed_at_the_end))).replace("REFUSED", "1").replace("SECURE", "1")
    running = gateway(text)
    with connect(running.port) as sock:
        client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        client.initiate_connection()
        client.send_headers(1, [(":method", "CONNECT"), (":authority", "service.test:1")])
        client.send_data(1, b"abc", end_stream=True)
        sock.sendall(client.data_to_send())
        seen, data, ended = [], b"", False
        while not ended:
            for event in client.receive_data(sock.recv(65536)):
                if isinstance(event, h2.events.ResponseReceived):
                    seen = [value for name, value in event.headers if name in (b":status", ":status")]
                elif isinstance(event, h2.events.DataReceived):
                    data += event.data
                elif isinstance(event, h2.events.StreamEnded):
                    ended = True
            sock.sendall(client.data_to_send())
        assert [value.decode() if isinstance(value, bytes) else value for value in seen] == ["200"]
        assert data == b"cba"


INNER = """
binds:
- port: {port}
  tunnelProtocol: connect
  listeners: [{name: outer, routes: [{name: never, policies: {directResponse: {status: 200, body: outer}}}]}]
- port: SECURE
  tunnelProtocol: connect
  listeners:
  - {name: secure, hostname: gate.test, protocol: HTTPS, tls: {cert: FOLDER/gate.pem, key: FOLDER/gate.key}, routes: []}
- port: PLAIN
  listeners:
  - name: plain
    routes:
    - {name: plain, policies: {transformations: {response: {set: {x-user: 'source.connectHeaders["x-user"]'}}}, directResponse: {status: 200, body: plain}}}
- port: 7443
  mode: internal
  listeners:
  - {name: web, hostname: web.test, protocol: HTTPS, tls: {cert: FOLDER/web.pem, key: FOLDER/web.key}, routes: [{name: web, policies: {directResponse: {status: 200, body: web}}}]}
- mode: internal
  listeners: [{name: rest, protocol: TCP, tcpRoutes: [{name: rest, backends: [{host: "127.0.0.1:BACKEND"}]}]}]
frontendPolicies: {accessLog: {add: {from: source.address, for: 'source.connectHeaders["x-user"]'}}}
"""


def test_tunnels_lead_to_other_ports_of_the_gateway(gateway, upstream, authority, tmp_path) -> None:
    for name in ("gate", "web"):
        issue(authority, tmp_path, name, f"{name}.test")
    plain, secure = free_port(), free_port()
    text = INNER.replace("FOLDER", str(tmp_path)).replace("PLAIN", str(plain)).replace("SECURE", str(secure))
    running = gateway(text.replace("BACKEND", str(upstream(named(b"db")))))
    port = running.port
    for more in (b"", GET):
        sock, head = opened(port, f"any.test:{plain}", more, "x-user: me\r\n")
        with sock:
            assert head.startswith(b"HTTP/1.1 200 ")
            if not more:
                sock.sendall(GET)
            answer = whole(sock)
            assert answer.endswith(b"plain")
            assert b"x-user: me\r\n" in answer
            name = sock.getsockname()[1]
    running.wait_log(f"route=default/plain src.addr=127.0.0.1:{name} ")
    line = next(line for line in running.log().splitlines() if "listener=plain" in line)
    assert "from=127.0.0.1 for=me" in line
    # TLS that the inner port ends, in a tunnel in plain text and in one in TLS.
    sock, _ = opened(port, "web.test:7443")
    with sock:
        stream = TlsStream(sock, client_context(tmp_path), "web.test")
        stream.send(GET.replace(b"a.test", b"web.test"))
        assert stream.whole().endswith(b"web")
    with connect(secure) as sock:
        stream = TlsStream(sock, client_context(tmp_path), "gate.test")
        stream.send(f"CONNECT gate.test:{plain} HTTP/1.1\r\nhost: gate.test\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += stream._until(lambda: stream.tls.read(1))
        assert b" 200 " in head
        stream.send(GET)
        assert stream.whole().endswith(b"plain")
    # All other ports.
    sock, _ = opened(port, "db.test:5432", b"x")
    with sock:
        sock.shutdown(socket.SHUT_WR)
        assert whole(sock) == b"db\nx"
    # There is nothing but tunnels here, and no tunnel in a tunnel.
    assert running.fetch(f"{running.url}/")[0] == 405
    sock, _ = opened(port, f"a.test:{plain}")
    with sock:
        sock.sendall(b"CONNECT a.test:1 HTTP/1.1\r\nhost: a.test\r\n\r\n")
        assert b" 405 " in sock.recv(1000)
    done = subprocess.run(
        ["curl", "-s", "--max-time", "60", "--proxytunnel", "--proxy", f"http://127.0.0.1:{port}",
         "--cacert", str(Path(tmp_path, "ca.pem")), "https://web.test:7443/"], capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "web"
    running.reload(text[: text.index("- mode: internal")].replace("BACKEND", "1"))
    sock, head = opened(port, "db.test:5432")
    with sock:
        assert b" 404 " in head
        assert whole(sock) == b"bind not found"
    labels = '{bind="bind/internal/7443",gateway="default/default",listener="web",protocol="https"}'
    assert running.metric(f"gw_downstream_connections_total{labels}") == 2


def test_connect_is_refused_by_default(gateway) -> None:
    running = gateway("gateways: {default: {port: {port}}}\nroutes: [{policies: {directResponse: {status: 200}}}]\n")
    sock, head = opened(running.port, "a.test:1")
    with sock:
        assert b" 405 " in head
