"""A forward proxy: clients name the destination, in every way that there is, and reach what they may."""

from __future__ import annotations

import http.client
import itertools
import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import httpx
import pytest
from tests.dns_rig import NameServer
from tests.end_to_end.asking import Echo
from tests.end_to_end.tcp_rig import TlsStream, client_context, connect, reversed_at_the_end, whole
from tests.end_to_end.tls_rig import authority, tls_upstream  # noqa: F401

OPEN = """
gateways: {default: {port: {port}}}
routes:
- backends: [{dynamic: {allowedRanges: [127.0.0.1/32]}}]
frontendPolicies: {connect: {mode: route}, accessLog: {add: {place: request.host}}}
"""


class Backend:
    """An HTTP server at one address that answers with what it was asked."""

    def __init__(self, address: str, port: int = 0) -> None:
        self.connections = 0
        backend = self

        class Handler(Echo):
            def setup(self) -> None:
                backend.connections += 1
                super().setup()

        self.server = ThreadingHTTPServer((address, port), Handler)
        self.port = int(self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def names() -> Iterator[NameServer]:
    with NameServer() as found:
        yield found


@pytest.fixture
def inside() -> Iterator[Backend]:
    """What clients may reach."""
    found = Backend("127.0.0.1")
    yield found
    found.close()


@pytest.fixture
def forbidden(inside: Backend) -> Iterator[Backend]:
    """What they may not, on the same port."""
    found = Backend("127.0.0.2", inside.port)
    yield found
    found.close()
    assert found.connections == 0


@pytest.fixture
def proxy(gateway: Callable[..., Any], names: NameServer) -> Callable[..., Any]:
    return lambda text: gateway(text, settings=f"  dns: {{servers: ['{names.place}']}}\n")


def curl(running: Any, *arguments: str, proxied: bool = True) -> str:
    way = ["--proxy", f"http://127.0.0.1:{running.port}"] if proxied else []
    done = subprocess.run(
        ["curl", "-sS", "--max-time", "60", *way, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


def asked(port: int, host: str, target: str = "/", method: str = "GET") -> tuple[int, bytes]:
    """The answer to a request whose host is written as it is."""
    with connect(port) as sock:
        sock.sendall(f"{method} {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
        answer = http.client.HTTPResponse(sock, method=method)
        answer.begin()
        return answer.status, b"" if answer.status == 200 and method == "CONNECT" else answer.read()


def test_destinations_are_those_of_requests(
    proxy: Callable[..., Any], names: NameServer, inside: Backend, authority: Any, tmp_path: Path
) -> None:
    names.answers |= {"a.test": ["127.0.0.1"], "b.test": ["127.0.0.1"]}
    running = proxy(OPEN)
    # A proxy of HTTP: the request target is a URL, and its host counts.
    seen = json.loads(curl(running, "-H", "host: other.test", "-d", "x=1", f"http://a.test:{inside.port}/p?q=1"))
    assert (seen["method"], seen["path"], seen["body"]) == ("POST", "/p?q=1", "x=1")
    fields = {name.lower(): value for name, value in seen["headers"]}
    assert fields["host"] == f"a.test:{inside.port}"
    assert not [name for name in fields if name.startswith("proxy-")]
    # Credentials for the proxy end there.
    seen = json.loads(curl(running, "--proxy-user", "u:p", f"http://A.test.:{inside.port}/"))
    assert not [name for name, _ in seen["headers"] if name.lower().startswith("proxy-")]
    # The host of an ordinary request.
    assert asked(running.port, f"b.test:{inside.port}")[0] == 200
    assert asked(running.port, f"127.0.0.1:{inside.port}")[0] == 200
    assert asked(running.port, f"[::ffff:127.0.0.1]:{inside.port}")[0] == 200
    # A tunnel, with HTTP and with TLS in it.
    assert json.loads(curl(running, "--proxytunnel", f"http://a.test:{inside.port}/t"))["path"] == "/t"
    secure = tls_upstream(authority, "a.test")
    told = curl(running, "--cacert", str(tmp_path / "ca.pem"), f"https://a.test:{secure}/")
    assert told == f"secure a.test:{secure}"
    running.wait_log("http.method=CONNECT http.host=a.test")
    running.wait_log(f"endpoint=a.test:{inside.port}")
    # HTTP/2 to the gateway.
    with httpx.Client(http1=False, http2=True) as client:
        for number in range(3):
            answer = client.get(f"{running.url}/{number}", headers={"host": f"b.test:{inside.port}"})
            assert (answer.http_version, answer.json()["path"]) == ("HTTP/2", f"/{number}")
    assert names.count("a.test") == names.count("b.test") == 1
    assert asked(running.port, "none.test") == (503, b"backends required DNS resolution which failed")


BAD = (
    "0x7f.1", "0x7f000001", "2130706433", "017700000001", "127.1", "0177.0.0.1", "127.0.0.01", "[fe80::1%25eth0]", "a..test",
    "-a.test", "a.test:0", "1.2.3.256",
)  # fmt: skip
DENIED = (
    "127.0.0.2", "127.0.0.2.", "0.0.0.0", "localhost2.test", "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "169.254.1.1",
    "169.254.169.254", "224.0.0.1", "[::1]", "[::]", "[::ffff:127.0.0.2]", "[::ffff:7f00:2]", "[fd00:ec2::254]", "[fe80::1]",
    "[fc00::1]", "[ff02::1]", "[2002:7f00:1::]", "[64:ff9b::7f00:2]", "[2001::1]", "[::127.0.0.2]",
)  # fmt: skip


def test_destinations_inside_are_refused(
    proxy: Callable[..., Any], names: NameServer, inside: Backend, forbidden: Backend
) -> None:
    names.answers |= {
        "inner.test": ["127.0.0.2"], "localhost2.test": ["127.0.0.2", "::1"], "meta.test": ["169.254.169.254"],
        "six.test": ["::1"], "mixed.test": ["127.0.0.2", "10.0.0.1", "127.0.0.1"],
    }  # fmt: skip
    running = proxy(OPEN)
    port = inside.port
    for host in BAD:
        place = host if ":" in host.rpartition("]")[2] else f"{host}:{port}"
        assert asked(running.port, place)[0] == 400, place
        assert asked(running.port, "a.test", f"http://{place}/")[0] == 400, place
        assert asked(running.port, place, place, "CONNECT")[0] == 400, place
    for host in (*DENIED, "inner.test", "meta.test", "six.test", "INNER.test."):
        place = f"{host}:{port}"
        refusal = (403, b"destination not allowed")
        assert asked(running.port, place) == refusal, place
        assert asked(running.port, "a.test", f"http://{place}/") == refusal, place
        assert asked(running.port, place, place, "CONNECT") == refusal, place
    running.wait_log("inner.test: 127.0.0.2 is a loopback address")
    assert "reason=Authorization" in running.log()
    # User information is none of a host's.
    assert asked(running.port, f"127.0.0.1@inner.test:{port}")[0] == 400
    # Of several addresses, those that may be reached are.
    assert asked(running.port, f"mixed.test:{port}")[0] == 200
    assert inside.connections == 1


def test_the_gateway_itself_is_no_destination(proxy: Callable[..., Any], names: NameServer) -> None:
    """Not even where its address may be reached: neither its ports, which would be a loop, nor its admin server."""
    names.answers["me.test"] = ["127.0.0.1"]
    running = proxy(OPEN)
    for port in (running.port, running.admin, running.stats, running.readiness):
        for host in ("127.0.0.1", "me.test", "[::ffff:127.0.0.1]"):
            assert asked(running.port, f"{host}:{port}")[0] == 403, (host, port)
            assert asked(running.port, f"{host}:{port}", f"{host}:{port}", "CONNECT")[0] == 403, (host, port)


def test_a_name_that_changes_its_address_gains_nothing(
    proxy: Callable[..., Any], names: NameServer, inside: Backend, forbidden: Backend
) -> None:
    """DNS rebinding: each question has another answer. The address that was checked is the one that is dialled."""
    names.ttl = 0
    running = proxy(OPEN)
    for number in range(8):
        turns = itertools.cycle((["127.0.0.1"], ["127.0.0.2"]))
        names.answers[f"r{number}.test"] = lambda turns=turns: next(turns)
    for number in range(8):
        place = f"r{number}.test:{inside.port}"
        method, target = ("GET", "/") if number % 2 else ("CONNECT", place)
        assert asked(running.port, place, target, method)[0] == 200
        assert names.count(f"r{number}.test") == 1
    assert inside.connections == 8


RULES = """
gateways: {default: {port: {port}}}
routes:
- name: listed
  hostnames: ["*.listed.test", listed.test]
  policies: {backendAuth: {key: of-the-route}}
  backends:
  - dynamic: {allowedHosts: ["a.listed.test", "*.b.listed.test"], allowedRanges: [127.0.0.1/32], allowedPorts: [PORT]}
    policies: {backendAuth: {key: own-key}}
- name: unlisted
  hostnames: [any.test]
  policies: {backendAuth: {key: of-the-route}}
  backends: [{dynamic: {allowedRanges: [127.0.0.1/32]}}]
- name: computed
  matches: [{path: {pathPrefix: /to/}}]
  backends: [{dynamic: {target: 'request.headers["x-to"] + ":PORT"', allowedRanges: [127.0.0.1/32]}}]
"""


def test_names_ports_and_credentials(proxy: Callable[..., Any], names: NameServer, inside: Backend) -> None:
    names.answers |= {name: ["127.0.0.1"] for name in ("a.listed.test", "x.b.listed.test", "c.listed.test", "any.test")}
    running = proxy(RULES.replace("PORT", str(inside.port)))

    def fields(host: str) -> dict[str, str]:
        status, body = asked(running.port, f"{host}:{inside.port}")
        assert status == 200, body
        return {name.lower(): value for name, value in json.loads(body)["headers"]}

    for host in ("a.listed.test", "x.b.listed.test"):
        assert fields(host)["authorization"] == "Bearer own-key"
    assert "authorization" not in fields("any.test"), "the route's key is for backends that the operator has chosen"
    for place in (f"c.listed.test:{inside.port}", f"b.listed.test:{inside.port}", "a.listed.test:1", f"listed.test:{inside.port}"):
        assert asked(running.port, place) == (403, b"destination not allowed"), place
    running.wait_log("c.listed.test is not among allowedHosts")
    running.wait_log("port 1 is not among allowedPorts")
    with httpx.Client(base_url=running.url) as client:
        answer = client.get("/to/x", headers={"x-to": "any.test"})
        assert dict(answer.json()["headers"])["host"] == f"any.test:{inside.port}"
        answer = client.get("/to/x", headers={"x-to": "127.0.0.1", "host": "kept.test"})
        assert dict(answer.json()["headers"])["host"] == "kept.test"
        for value, status, text in (("127.0.0.2", 403, "destination not allowed"), ("0x7f.1", 503, "processing failed: ")):
            answer = client.get("/to/x", headers={"x-to": value})
            assert (answer.status_code, answer.text[: len(text)]) == (status, text)
        answer = client.get("/to/x")
        assert (answer.status_code, answer.text[:18]) == (503, "processing failed:")


PASSED_ON = """
binds:
- port: {port}
  tunnelProtocol: connect
  listeners: [{name: gate}]
- mode: internal
  listeners:
  - name: by-name
    protocol: TLS
    tcpRoutes: [{name: dynamic, backends: [{dynamic: {allowedRanges: [127.0.0.1/32]}}]}]
"""
BY_NAME = """
gateways: {default: {port: {port}, protocol: TLS}}
tcpRoutes: [{backends: [{dynamic: {allowedRanges: [127.0.0.0/8]}}]}]
"""


def test_connections_go_where_their_handshake_says(
    proxy: Callable[..., Any], names: NameServer, authority: Any, tmp_path: Path
) -> None:
    """The name of the handshake, and the port that the client wanted: that of the tunnel which it comes through."""
    names.answers |= {"a.test": ["127.0.0.1"], "inner.test": ["127.0.0.2"]}
    secure = tls_upstream(authority, "a.test")
    running = proxy(PASSED_ON)
    context = client_context(tmp_path)
    told = curl(running, "--proxytunnel", "--cacert", str(tmp_path / "ca.pem"), f"https://a.test:{secure}/")
    assert told == f"secure a.test:{secure}"
    for name, reason in (("inner.test", "127.0.0.2 is a loopback address"), (None, "the client names no server")):
        sock = connect(running.port)
        sock.sendall(f"CONNECT any.test:{secure} HTTP/1.1\r\nhost: any.test\r\n\r\n".encode())
        assert sock.recv(1000).startswith(b"HTTP/1.1 200 ")
        context.check_hostname = name is not None
        with sock, pytest.raises((ConnectionError, OSError)):
            TlsStream(sock, context, name)
        running.wait_log(reason)


def test_a_connection_to_the_port_itself_is_a_loop(proxy: Callable[..., Any], names: NameServer, tmp_path: Path, authority: Any) -> None:
    names.answers["loop.test"] = ["127.0.0.1"]
    running = proxy(BY_NAME)
    with connect(running.port) as sock, pytest.raises(OSError):
        TlsStream(sock, client_context(tmp_path), "loop.test")
    running.wait_log("the gateway's own")


SECURE = """
gateways: {default: {port: {port}}}
routes:
- backends: [{dynamic: {allowedRanges: [127.0.0.1/32]}, policies: {backendTLS: {root: "ROOT"}}}]
"""


def test_each_destination_shows_a_certificate_of_its_own(proxy: Callable[..., Any], names: NameServer, authority: Any, tmp_path: Path) -> None:
    names.answers |= {"a.test": ["127.0.0.1"], "b.test": ["127.0.0.1"]}
    place = tls_upstream(authority, "a.test")
    running = proxy(SECURE.replace("ROOT", str(tmp_path / "ca.pem")))
    assert asked(running.port, f"a.test:{place}") == (200, f"secure a.test:{place}".encode())
    status, body = asked(running.port, f"b.test:{place}")
    assert (status, body[:22]) == (503, b"upstream call failed: ")
    asked(running.port, "a.test")
    running.wait_log("endpoint=a.test:443")


def test_tunnels_over_http2(proxy: Callable[..., Any], names: NameServer, upstream: Callable[..., int]) -> None:
    names.answers |= {"a.test": ["127.0.0.1"], "inner.test": ["127.0.0.2"]}
    backend = upstream(reversed_at_the_end)
    running = proxy(OPEN)
    for name, wanted in (("a.test", ("200", b"cba")), ("inner.test", ("403", b"destination not allowed"))):
        with connect(running.port) as sock:
            client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
            client.initiate_connection()
            client.send_headers(1, [(":method", "CONNECT"), (":authority", f"{name}:{backend}")])
            client.send_data(1, b"abc", end_stream=True)
            sock.sendall(client.data_to_send())
            status, data, ended = "", b"", False
            while not ended:
                for event in client.receive_data(sock.recv(65536)):
                    if isinstance(event, h2.events.ResponseReceived):
                        status = {bytes(key): bytes(value) for key, value in event.headers}[b":status"].decode()
                    elif isinstance(event, h2.events.DataReceived):
                        data += event.data
                    elif isinstance(event, h2.events.StreamEnded):
                        ended = True
                sock.sendall(client.data_to_send())
        assert (status, data) == wanted


def test_a_reload_keeps_connections_and_takes_rules_up(
    proxy: Callable[..., Any], names: NameServer, inside: Backend
) -> None:
    names.answers["a.test"] = ["127.0.0.1"]
    running = proxy(OPEN)
    place = f"a.test:{inside.port}"
    with httpx.Client(base_url=running.url, headers={"host": place}) as client:
        assert client.get("/").status_code == 200
        before = inside.connections      # two, where the client speaks HTTP/2 and the backend was asked whether it does
        running.reload(OPEN.replace("{place: request.host}", "{where: request.host}"))
        assert client.get("/").status_code == 200
        assert inside.connections == before, "the same rules: the same connections"
        running.reload(OPEN.replace("127.0.0.1/32", "127.0.0.3/32"))
        assert client.get("/").status_code == 403
        running.reload(OPEN.replace("allowedRanges: [127.0.0.1/32]", "allowedHosts: [b.test], allowedRanges: [127.0.0.1/32]"))
        assert client.get("/").status_code == 403
    with socket.create_connection(("127.0.0.1", inside.port)) as sock:
        sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert whole(sock).startswith(b"HTTP/1.1 200")
