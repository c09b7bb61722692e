"""CONNECT over HTTP/2: what is in a stream is served by another port of the gateway."""

from __future__ import annotations

import json

import pytest
from tests.end_to_end.http2_tunnels_rig import TunnelClient, TunnelSocket, secured
from tests.end_to_end.running import free_port
from tests.end_to_end.tcp_rig import TlsStream, client_context, connect, named, reversed_at_the_end, whole
from tests.end_to_end.tls_rig import authority, issue  # noqa: F401

pytestmark = pytest.mark.warm

GET = b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n"

CONFIG = """
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
    - name: bodies
      matches: [{path: {pathPrefix: /body}}]
      backends: [{host: "127.0.0.1:ECHO"}]
    - name: plain
      policies:
        transformations: {response: {set: {x-user: 'source.connectHeaders["x-user"]'}}}
        directResponse: {status: 200, body: plain}
- port: 7443
  mode: internal
  listeners:
  - name: web
    hostname: web.test
    protocol: HTTPS
    tls: {cert: FOLDER/web.pem, key: FOLDER/web.key}
    routes: [{name: web, policies: {directResponse: {status: 200, body: web}}}]
- port: 7001
  mode: internal
  listeners: [{name: backwards, protocol: TCP, tcpRoutes: [{name: backwards, backends: [{host: "127.0.0.1:REVERSED"}]}]}]
- mode: internal
  listeners: [{name: rest, protocol: TCP, tcpRoutes: [{name: rest, backends: [{host: "127.0.0.1:BACKEND"}]}]}]
frontendPolicies:
  http: {http1IdleTimeout: 1s}
  networkAuthorization: {rules: [{deny: 'default(source.connectHeaders["x-user"], "") == "bad"'}]}
  accessLog: {add: {from: source.address, for: 'source.connectHeaders["x-user"]'}}
"""


@pytest.fixture
def started(gateway, upstream, echo, authority, tmp_path):
    for name in ("gate", "web"):
        issue(authority, tmp_path, name, f"{name}.test")
    ports = {
        "SECURE": free_port(), "PLAIN": free_port(), "ECHO": echo,
        "BACKEND": upstream(named(b"db")), "REVERSED": upstream(reversed_at_the_end),
    }  # fmt: skip
    text = CONFIG.replace("FOLDER", str(tmp_path))
    for name, port in ports.items():
        text = text.replace(name, str(port))
    return gateway(text), ports["PLAIN"], ports["SECURE"]


def test_streams_lead_to_other_ports(started) -> None:
    running, plain, _ = started
    with connect(running.port) as sock:
        client = TunnelClient(sock)
        name = sock.getsockname()[1]
        first = client.connect(f"any.test:{plain}", ("x-user", "me"))
        second = client.connect("db.test:5432")
        assert (first.status, second.status) == (200, 200)
        for _ in range(3):      # requests of one connection within the tunnel, beside another tunnel
            client.send(first, GET)
            assert b"\r\nx-user: me\r\n" in client.until(first, b"plain")
            client.send(second, b"more")
            assert client.until(second, b"more") in (b"db\nmore", b"more")
        client.send(first, GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        assert client.whole(first).data.endswith(b"plain")
        # Each half ends by itself.
        backwards = client.connect("any.test:7001")
        client.send(backwards, b"abc", end=True)
        assert (client.whole(backwards).data, backwards.reset) == (b"cba", None)
        half = client.connect(f"any.test:{plain}")
        client.send(half, GET, end=True)
        assert client.whole(half).data.endswith(b"plain")
        client.send(second, b"", end=True)
        assert client.whole(second).reset is None
        # There is nothing but tunnels here, and no tunnel in a tunnel.
        assert client.get().status == 405
        inner = client.connect(f"any.test:{plain}")
        client.send(inner, b"CONNECT a.test:1 HTTP/1.1\r\nhost: a.test:1\r\n\r\n")
        assert client.whole(inner).data.startswith(b"HTTP/1.1 405 ")
    running.wait_log(f"http.method=CONNECT http.host=any.test http.path=any.test:{plain} http.version=HTTP/2.0 http.status=200")
    running.wait_log(f"src.addr=127.0.0.1:{name} bytes.received=0 bytes.sent=5 http.method=GET")
    line = next(line for line in running.log().splitlines() if "listener=plain" in line)
    assert "from=127.0.0.1 for=me" in line
    running.wait_log("bytes.received=3 bytes.sent=3")


def test_http2_and_tls_within_a_stream(started, tmp_path) -> None:
    _, plain, secure = started
    with secured(secure, client_context(tmp_path), "gate.test") as sock:
        client = TunnelClient(sock)
        web = client.connect("web.test:7443")
        stream = TlsStream(TunnelSocket(client, web), client_context(tmp_path), "web.test")
        stream.send(GET.replace(b"a.test", b"web.test"))
        answer = b""
        while not answer.endswith(b"web"):
            answer += stream._until(lambda: stream.tls.read(65536))
        # HTTP/2 within a stream of HTTP/2.
        outer = client.connect(f"any.test:{plain}")
        inner = TunnelClient(TunnelSocket(client, outer))  # type: ignore[arg-type]
        assert [inner.get().data for _ in range(3)] == [b"plain"] * 3


def test_bodies_and_slow_readers(started) -> None:
    running, plain, _ = started
    body = "".join(f"{number:7}\n" for number in range(250_000)).encode()
    request = b"POST /body HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
    with connect(running.port) as sock:
        client = TunnelClient(sock)
        tunnel = client.connect(f"any.test:{plain}")
        client.send(tunnel, request + body)
        head, _, answer = client.whole(tunnel).data.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert json.loads(answer)["body"].encode() == body
        # One that takes nothing gets its window, and no other tunnel waits for it.
        client.greedy = False
        slow = client.connect(f"any.test:{plain}")
        client.send(slow, request + body)
        while len(slow.data) < 65535:
            client.read()
        quick = client.connect("db.test:1")
        assert client.until(quick, b"db\n") == b"db\n"
        assert len(slow.data) == 65535


def test_limits_and_ends(started) -> None:
    running, plain, _ = started
    with connect(running.port) as sock:
        client = TunnelClient(sock)
        # Nobody serves the port; the rules of connections refuse; the idle time-out of the port; a client that gives up.
        refused = client.connect(f"any.test:{plain}", ("x-user", "bad"))
        assert client.whole(refused).reset == 8
        quiet = client.connect(f"any.test:{plain}")
        assert client.whole(quiet).data == b""
        gone = client.connect("db.test:9")
        client.until(gone, b"db\n")
        client.h2.reset_stream(gone.number, 8)
        client.flush()
        running.wait_log("network authorization failed")
        running.wait_log("client closed the connection")


def test_tunnels_outlive_a_reload_and_end_with_their_connection(started) -> None:
    running, plain, _ = started
    text = running.path.read_text().replace("http1IdleTimeout: 1s", "http1IdleTimeout: 300s")
    text = text[text.index("binds:") :]
    running.reload(text)
    with connect(running.port) as sock:
        client = TunnelClient(sock)
        last = client.connect(f"any.test:{plain}")
        client.send(last, GET)
        client.until(last, b"plain")
        # A reload that drops the wildcard drops no tunnel.
        running.reload(without_wildcard(text))
        assert client.connect("db.test:5432").status == 404
        client.send(last, GET)
        client.until(last, b"plain")
        # The connection goes, and all that is in it.
        cut = client.connect(f"any.test:{plain}")
        client.send(cut, GET[:-9])
    assert running.fetch(f"http://127.0.0.1:{plain}/")[0] == 200


def without_wildcard(text: str) -> str:
    """The configuration of a gateway, without what its rig puts in front and without the wildcard."""
    body = text[text.index("binds:") :]
    start = body.index("- mode: internal")
    return body[:start] + body[body.index("frontendPolicies:") :]


def test_a_drain_ends_the_tunnels(started) -> None:
    running, plain, _ = started
    with connect(running.port) as sock:
        client = TunnelClient(sock)
        tunnel = client.connect(f"any.test:{plain}")
        client.send(tunnel, GET)
        client.until(tunnel, b"plain")
        running.process.terminate()
        assert b"\x07" in whole(sock)         # the type of GOAWAY, behind which the h2 package reads no more
    assert running.process.wait(60) == 0
