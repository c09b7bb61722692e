"""`proxyProtocol` of backends: HAProxy, nginx and servers of our own are told whose each connection is."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import grpc
import httpx
import proxy_naive as naive
import pytest
from tests.end_to_end.running import free_port
from tests.end_to_end.tcp_rig import TlsStream, client_context, connect, whole
from tests.end_to_end.tls_rig import authority, issue  # noqa: F401

pytestmark = pytest.mark.warm
GET = b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n"
V1, V2 = ("{proxyProtocol: {version: v1}}", "{proxyProtocol: {version: v2}}")


def tcp(port: str | int, backend: int, policies: str, more: str = "") -> str:
    place = f'backends: [{{host: "127.0.0.1:{backend}", policies: {policies}}}]'
    return f"- {{port: {port}{more}, listeners: [{{protocol: TCP, tcpRoutes: [{{{place}}}]}}]}}\n"


def back(connection: socket.socket) -> None:
    """All that came."""
    connection.sendall(whole(connection))


def asked(port: int, data: bytes) -> tuple[bytes, int]:
    """What comes back, and the port that it was asked from."""
    with connect(port) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        return whole(sock), sock.getsockname()[1]


def extensions(header: bytes) -> dict[int, bytes]:
    found = {}
    while header:
        kind, length = struct.unpack("!BH", header[:3])
        found[kind] = header[3 : 3 + length]
        header = header[3 + length :]
    return found


def block(data: bytes) -> tuple[tuple[str, int, str, int], dict[int, bytes], bytes]:
    """Addresses and extensions of a header of version 2 over IPv4, and what follows it."""
    assert data.startswith(naive.SIGNATURE + b"\x21\x11")
    end = 16 + struct.unpack("!H", data[14:16])[0]
    ports = struct.unpack("!HH", data[24:28])
    ends = (socket.inet_ntoa(data[16:20]), ports[0], socket.inet_ntoa(data[20:24]), ports[1])
    return ends, extensions(data[28:end]), data[end:]


def test_bytes_of_tcp_routes(gateway, upstream) -> None:
    second, proxied, unix = free_port(), free_port(), free_port()
    backend = upstream(back)
    text = "binds:\n" + tcp("{port}", backend, V1) + tcp(second, backend, V2)
    running = gateway(text + tcp(proxied, backend, V2, ", tunnelProtocol: proxy") + tcp(unix, backend, "{}"))
    for _ in range(3):
        found, port = asked(running.port, b"abc")
        assert found == b"PROXY TCP4 127.0.0.1 127.0.0.1 %d %d\r\nabc" % (port, running.port)
        found, port = asked(second, b"abc")
        assert block(found) == (("127.0.0.1", port, "127.0.0.1", second), {}, b"abc")
        # Behind another proxy: what that one has said.
        found, _ = asked(proxied, naive.v2("192.0.2.8", 4712, more=b"\x02\0\6a.test") + b"abc")
        assert block(found) == (("192.0.2.8", 4712, "127.0.0.1", 443), {}, b"abc")
        # Of its own: that its addresses are those of its socket.
        found, port = asked(proxied, naive.v2("192.0.2.8", 1, command=0x20) + b"abc")
        assert block(found) == (("127.0.0.1", port, "127.0.0.1", proxied), {}, b"abc")
        assert asked(unix, b"abc")[0] == b"abc"
    found, _ = asked(proxied, naive.v2("2001:db8::8", 4712) + b"abc")
    assert naive.read(found)[2:] == ("2001:db8::8", 4712)


TLS = """
binds:
- port: {port}
  listeners:
  - name: ended
    hostname: ended.test
    protocol: TLS
    tls: {cert: FOLDER/web.pem, key: FOLDER/web.key, root: FOLDER/ca.pem, mtlsMode: allowInsecureFallback}
    tcpRoutes: [{backends: [{host: "127.0.0.1:BACKEND", policies: {proxyProtocol: {version: v2}}}]}]
  - name: passed
    hostname: passed.test
    protocol: TLS
    tcpRoutes: [{backends: [{host: "127.0.0.1:BACKEND", policies: {proxyProtocol: {version: v2}}}]}]
"""


def test_what_is_known_of_tls(gateway, upstream, authority, tmp_path) -> None:
    issue(authority, tmp_path, "web", "ended.test")
    text = TLS.replace("FOLDER", str(tmp_path)).replace("BACKEND", str(upstream(back)))
    running = gateway(text.replace(", mtlsMode: allowInsecureFallback", ""))
    context = client_context(tmp_path)
    authority.issue_cert("client.test", common_name="somebody").configure_cert(context)
    with connect(running.port) as sock:
        stream = TlsStream(sock, context, "ended.test")
        stream.send(b"abc")
        stream.end_output()
        ends, found, rest = block(stream.whole())
        assert (ends[1], rest) == (sock.getsockname()[1], b"abc")
        cipher = stream.tls.cipher()
        version = stream.tls.version()
    assert found[2] == b"ended.test"
    flags, verify = struct.unpack("!BI", found[0x20][:5])
    parts = extensions(found[0x20][5:])
    assert (flags, verify) == (1 | 2 | 4, 0), "with a certificate on this connection, which was verified"
    assert parts == {0x21: str(version).encode(), 0x22: b"somebody", 0x23: cipher[0].encode()}
    # What is passed on has a name and nothing else that we know; the client's hello follows the header.
    got: list[bytes] = []
    with connect(running.port) as sock:
        bio, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(bio, out, server_hostname="passed.test")
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        hello = out.read()
        sock.sendall(hello)
        sock.shutdown(socket.SHUT_WR)
        got.append(whole(sock))
        port = sock.getsockname()[1]
    assert block(got[0]) == (("127.0.0.1", port, "127.0.0.1", running.port), {2: b"passed.test"}, hello)


def test_clients_without_a_certificate(gateway, upstream, authority, tmp_path) -> None:
    issue(authority, tmp_path, "web", "ended.test")
    text = TLS.replace("FOLDER", str(tmp_path)).replace("BACKEND", str(upstream(back)))
    running = gateway(text.replace(f", root: {tmp_path}/ca.pem, mtlsMode: allowInsecureFallback", ""))
    with connect(running.port) as sock:
        stream = TlsStream(sock, client_context(tmp_path), "ended.test")
        stream.end_output()
        _, found, _ = block(stream.whole())
    flags, verify = struct.unpack("!BI", found[0x20][:5])
    assert (flags, verify != 0) == (1, True)


HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
"""
TELLS = '"%[src]:%[src_port] %[dst]:%[dst_port] %[fc_pp_authority]"'
FRONT = """
frontend f{name}
  bind {bind}
  http-request return status 200 content-type text/plain lf-string {tells}
"""


@contextlib.contextmanager
def server(argv: list[str], ports: list[int]) -> Iterator[None]:
    process = subprocess.Popen(argv)
    try:
        for port in ports:
            while True:
                with contextlib.suppress(OSError), connect(port):
                    break
                assert process.poll() is None
        yield
    finally:
        process.terminate()
        process.wait(60)


def haproxy(folder: Path, binds: list[tuple[int, str]], more: str = "") -> contextlib.AbstractContextManager[None]:
    path = folder / "haproxy.cfg"
    fronts = (FRONT.format(name=port, bind=f"127.0.0.1:{port} {how}", tells=TELLS) for port, how in binds)
    path.write_text(HAPROXY + "".join(fronts) + more)
    return server(["haproxy", "-db", "-q", "-f", str(path)], [port for port, _ in binds])


def route(path: str, host: str, policies: str) -> str:
    return f"- {{matches: [{{path: {{pathPrefix: {path}}}}}], backends: [{{host: {host}, policies: {{{policies}}}}}]}}\n"


class Told:
    """A client of HTTP that keeps its connection, and checks that the backend knows it."""

    def __init__(self, port: int, *, http2: bool) -> None:
        self.client = httpx.Client(http2=http2, http1=not http2, base_url=f"http://127.0.0.1:{port}", timeout=60)
        self.port = port

    def ask(self, path: str) -> int:
        """The port that the request came from."""
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        own = answer.extensions["network_stream"].get_extra_info("client_addr")[1]
        words = answer.text.split()
        assert words[:2] == [f"127.0.0.1:{own}", f"127.0.0.1:{self.port}"], path
        return own


@pytest.mark.skipif(not shutil.which("haproxy"), reason="needs haproxy")
def test_requests_to_haproxy(gateway, authority, tmp_path) -> None:
    issue(authority, tmp_path, "web", "web.test")
    pem = tmp_path / "both.pem"
    pem.write_bytes((tmp_path / "web.pem").read_bytes() + (tmp_path / "web.key").read_bytes())
    plain, two, safe = free_port(), free_port(), free_port()
    path = tmp_path / "h.sock"
    binds = [(plain, "accept-proxy"), (two, "accept-proxy proto h2"), (safe, f"accept-proxy ssl crt {pem} alpn h2,http/1.1")]
    unix = FRONT.format(name="unix", bind=f"unix@{path} accept-proxy", tells=TELLS)
    trust = f"backendTLS: {{root: {tmp_path}/ca.pem, hostname: web.test"
    places = {
        "/v1": (f"'127.0.0.1:{plain}'", "proxyProtocol: {version: v1}"),
        "/v2": (f"'127.0.0.1:{plain}'", "proxyProtocol: {version: v2}, http: {version: HTTP/1.1}"),
        "/two": (f"'127.0.0.1:{two}'", "proxyProtocol: {version: v2}, http: {version: HTTP/2}"),
        "/safe": (f"'127.0.0.1:{safe}'", trust + "}, proxyProtocol: {version: v2}"),
        "/both": (f"'127.0.0.1:{safe}'", trust + ", alpn: [h2, http/1.1]}, proxyProtocol: {version: v1}"),
        "/names": (f"'localhost:{plain}'", "proxyProtocol: {version: v1}"),
        "/unix": (f"'unix:{path}'", "proxyProtocol: {version: v2}"),
    }
    routes = "".join(route(name, *place) for name, place in places.items())
    with haproxy(tmp_path, binds, unix):
        running = gateway("gateways: {default: {port: {port}}}\nroutes:\n" + routes)
        clients = [Told(running.port, http2=index % 2 == 1) for index in range(6)]
        kept = {client: client.ask("/v1") for client in clients[::2]}
        # In turns and at once: nobody gets the connection of another one.
        for _ in range(2):
            for name in places:
                for client in clients:
                    if (name, client.client._transport._pool._http2) != ("/v1", True):  # type: ignore[attr-defined]
                        client.ask(name)
        with futures.ThreadPoolExecutor(6) as threads:
            ways = [name for name in places if name != "/v1"]
            list(threads.map(lambda client: [client.ask(name) for name in ways * 5], clients))
        assert {client: client.ask("/v1") for client in kept} == kept
        for client in clients:
            client.client.close()


NGINX = """
daemon off; worker_processes 1; pid FOLDER/nginx.pid; error_log FOLDER/error.log;
events {}
http {
  access_log off;
  client_body_temp_path FOLDER/b; proxy_temp_path FOLDER/p; fastcgi_temp_path FOLDER/f; uwsgi_temp_path FOLDER/u;
  scgi_temp_path FOLDER/s;
  server {
    listen 127.0.0.1:PORT proxy_protocol;
    listen 127.0.0.1:TWO proxy_protocol http2;
    location / {
      default_type text/plain;
      return 200 "$proxy_protocol_addr:$proxy_protocol_port $proxy_protocol_server_addr:$proxy_protocol_server_port";
    }
  }
}
"""


@pytest.mark.skipif(not shutil.which("nginx"), reason="needs nginx")
def test_requests_and_connections_to_nginx(gateway, tmp_path) -> None:
    plain, two, bytes_ = free_port(), free_port(), free_port()
    path = tmp_path / "nginx.conf"
    text = NGINX.replace("FOLDER", str(tmp_path)).replace("PORT", str(plain)).replace("TWO", str(two))
    path.write_text(text)
    routes = [
        route(f"/{version}", f"'127.0.0.1:{port}'", f"proxyProtocol: {{version: {version[:2]}}}, http: {{version: {http}}}")
        for version, port, http in (("v1", plain, "HTTP/1.1"), ("v2", plain, "HTTP/1.1"), ("v1-two", two, "HTTP/2"), ("v2-two", two, "HTTP/2"))
    ]  # fmt: skip
    routes.reverse()
    listener = f"- port: {{port}}\n  listeners:\n  - routes:\n{''.join('    ' + line for line in routes)}"
    with server(["nginx", "-p", str(tmp_path), "-c", str(path)], [plain, two]):
        running = gateway("binds:\n" + listener + tcp(bytes_, plain, V1))
        clients = [Told(running.port, http2=False) for _ in range(3)]
        for _ in range(3):
            for client in clients:
                assert len({client.ask(name) for name in ("/v1", "/v2", "/v1-two", "/v2-two")}) == 1
        for _ in range(3):
            found, port = asked(bytes_, GET)
            assert found.endswith(b"127.0.0.1:%d 127.0.0.1:%d" % (port, bytes_))
        for client in clients:
            client.client.close()


def test_upgrades_mirrors_and_services(gateway, upstream) -> None:
    """A connection that becomes a tunnel has a header, and one of the gateway itself has no client to tell of."""
    seen: list[bytes] = []
    mirrored = threading.Event()

    def upgrading(connection: socket.socket) -> None:
        first = b""
        while b"\r\n\r\n" not in first:
            first += connection.recv(65536)
        connection.sendall(b"HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n" + first.split(b"\r\n")[0])

    def counting(connection: socket.socket) -> None:
        first = b""
        while b"\r\n\r\n" not in first:
            part = connection.recv(65536)
            if not part:
                return
            first += part
        seen.append(first)
        mirrored.set()
        connection.sendall(b"HTTP/1.1 200 X\r\ncontent-length: 0\r\n\r\n")

    text = """
gateways: {default: {port: {port}}}
backends: [{name: copy, host: "127.0.0.1:COPY", policies: {proxyProtocol: {version: v1}}}]
services: [{name: db, namespace: shop, hostname: db.test, ports: {"80": UP}}]
workloads: [{uid: w, name: w, namespace: shop, workloadIps: [127.0.0.1], services: {shop/db.test: {"80": UP}}}]
routes:
- policies: {requestMirror: {backend: {backend: copy}, percentage: 1}}
  backends: [{service: {name: shop/db.test, port: 80}, policies: {proxyProtocol: {version: v1}}}]
"""
    running = gateway(text.replace("COPY", str(upstream(counting))).replace("UP", str(upstream(upgrading))))
    for _ in range(2):
        with connect(running.port) as sock:
            key = b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n"
            sock.sendall(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n" + key + b"\r\n")
            answer = whole(sock)
            assert answer.endswith(b"PROXY TCP4 127.0.0.1 127.0.0.1 %d %d" % (sock.getsockname()[1], running.port)), answer
    assert mirrored.wait(60)
    assert seen[0].startswith(b"PROXY UNKNOWN\r\nGET / ")


@pytest.mark.skipif(not shutil.which("haproxy"), reason="needs haproxy")
def test_grpc(gateway, tmp_path) -> None:
    def told(_request: bytes, context: grpc.ServicerContext) -> bytes:
        return dict(context.invocation_metadata())["x-source"].encode()

    backend = grpc.server(futures.ThreadPoolExecutor(4))
    handlers = {"Told": grpc.unary_unary_rpc_method_handler(told)}
    backend.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", handlers),))
    last = backend.add_insecure_port("127.0.0.1:0")
    backend.start()
    front = free_port()
    more = f"""
listen grpc
  bind 127.0.0.1:{front} accept-proxy proto h2
  http-request set-header x-source %[src]:%[src_port]
  server one 127.0.0.1:{last} proto h2
"""
    try:
        with haproxy(tmp_path, [(free_port(), "")], more):
            running = gateway("gateways: {default: {port: {port}}}\nroutes:\n" + route("/", f"'127.0.0.1:{front}'", "proxyProtocol: {version: v2}"))
            found = []
            for _ in range(2):
                option = [("grpc.use_local_subchannel_pool", 1)]
                with grpc.insecure_channel(f"127.0.0.1:{running.port}", options=option) as channel:
                    call = channel.unary_unary("/test.Echo/Told")
                    of_one = {call(b"", timeout=60, wait_for_ready=True) for _ in range(3)}
                    assert len(of_one) == 1
                    found += of_one
            assert len(set(found)) == 2
            assert all(one.startswith(b"127.0.0.1:") for one in found)
            for one in found:
                running.wait_log(f"src.addr={one.decode()}")
    finally:
        backend.stop(None)
