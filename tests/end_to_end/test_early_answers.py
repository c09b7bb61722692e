"""Answers that are complete before their request is: over HTTP/2 they reach clients that first send all (RFC 9113, section 8.1), and
what has come of the body is in the log."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator

import grpc
import h2.connection
import h2.events
import h2.settings
import httpx
import pytest

pytestmark = pytest.mark.warm

CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: read
  matches: [{path: {pathPrefix: /read}}]
  policies: {buffer: {request: {maxBytes: 100}}}
  backends: [{host: "127.0.0.1:EARLY"}]
- name: made
  matches: [{path: {pathPrefix: /made}}]
  policies: {directResponse: {status: 201, body: made}}
- name: early
  matches: [{path: {pathPrefix: /early}}]
  backends: [{host: "127.0.0.1:EARLY", policies: {http: {version: HTTP/1.1}}}]
- name: twice
  matches: [{path: {pathPrefix: /twice}}]
  policies: {urlRewrite: {path: {full: /made}}}
  backends: [{host: "127.0.0.1:{port}", policies: {http: {version: HTTP/2}}}]
- name: grpc
  matches: [{path: {pathPrefix: /test.Refused}}]
  policies: {authorization: {rules: ["false"]}}
  backends: [{host: "127.0.0.1:EARLY"}]
"""
# Path and answer.
ANSWERS = (("/read", 413, ""), ("/made", 201, "made"), ("/early", 403, "early"), ("/twice", 201, "made"))


def early(connection: socket.socket) -> None:
    """A backend that answers when it has seen the head, and throws the rest away."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 5\r\nconnection: close\r\n\r\nearly")
    connection.shutdown(socket.SHUT_WR)
    with contextlib.suppress(OSError):
        while connection.recv(65536):
            pass


def pieces(count: int, size: int) -> Iterator[bytes]:
    for _ in range(count):
        yield b"x" * size


def test_httpx(gateway, upstream) -> None:
    """It sends all of a request before it reads, waits for its window, and takes a reset for a failure."""
    running = gateway(CONFIG.replace("EARLY", str(upstream(early))))
    for path, status, text in ANSWERS:
        with httpx.Client(http1=False, http2=True, timeout=60) as client:
            for content in (b"x" * 60_000, b"x" * 5_000_000, pieces(20, 10_000), pieces(500, 10_000)):
                answer = client.post(running.url + path, content=content)
                assert (answer.status_code, answer.text, answer.http_version) == (status, text, "HTTP/2"), path
            assert client.post(running.url + "/made", content=b"").status_code == 201
    running.wait_log("http.path=/read http.version=HTTP/2.0 http.status=413")


def test_curl_and_nghttp(gateway, upstream, tmp_path) -> None:
    """curl stops sending when it has been refused; nghttp sends on."""
    running = gateway(CONFIG.replace("EARLY", str(upstream(early))))
    body = tmp_path / "body"
    for size in (60_000, 3_000_000):
        body.write_bytes(b"x" * size)
        for path, status, text in ANSWERS:
            if status >= 400:
                done = subprocess.run(
                    ["curl", "-s", "--max-time", "60", "--http2-prior-knowledge", "-w", " %{http_version} %{http_code}",
                     "--data-binary", f"@{body}", running.url + path], capture_output=True, text=True, check=False,
                )  # fmt: skip
                assert (done.returncode, done.stdout) == (0, f"{text} 2 {status}"), path
            if shutil.which("nghttp"):
                done = subprocess.run(
                    ["nghttp", "-v", "-t", "60", "-d", str(body), running.url + path], capture_output=True, text=True, check=False)
                assert done.returncode == 0
                assert f":status: {status}" in done.stdout, path


def test_grpc_client_streams(gateway, upstream) -> None:
    """A refusal reaches a client that would have sent for ever."""
    running = gateway(CONFIG.replace("EARLY", str(upstream(early))))
    more = threading.Event()

    def messages() -> Iterator[bytes]:
        while not more.wait(0.001):
            yield b"x" * 10_000

    with grpc.insecure_channel(f"127.0.0.1:{running.port}") as channel:
        for _ in range(3):
            with pytest.raises(grpc.RpcError) as caught:
                channel.stream_unary("/test.Refused/Up")(messages(), timeout=60)
            assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
        more.set()
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/test.Refused/Unary")(b"x" * 3_000_000, timeout=60)
        assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED


# -- what has come of the body when the answer was there first ----------------------------------------------------------------------
# Behind the head, in the same packet; the bytes of content in it; how often the answer comes.
BODIES = {
    "length": (b"content-length: 5\r\n\r\nhello", 5, 1),
    "part": (b"content-length: 9\r\n\r\nhello", 5, 1),
    "long": (b"content-length: 900000\r\n\r\nhello", 5, 1),
    "chunks": (b"transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;a=b\r\nllo\r\n0\r\nx: y\r\n\r\n", 5, 1),
    "malformed": (b"transfer-encoding: chunked\r\n\r\n3\r\nhel\r\nZZ\r\n", 3, 1),
    "waits": (b"content-length: 5\r\nexpect: 100-continue\r\n\r\n", 0, 1),
    "none": (b"content-length: 0\r\n\r\n", 0, 1),
    "pipelined": (b"content-length: 5\r\n\r\nhello" + b"POST /made/pipelined HTTP/1.1\r\nhost: a.test\r\ncontent-length: 5\r\n\r\nhello" * 300, 5, 301),
}


@pytest.mark.http1(reason="what stands behind a head of HTTP/1.1")
@pytest.mark.parametrize("case", BODIES)
def test_bytes_of_a_body_that_nobody_reads(gateway, case: str) -> None:
    behind, size, count = BODIES[case]
    running = gateway(CONFIG.replace("EARLY", "9"))
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as client, client.makefile("rb") as answers:
        client.sendall(b"POST /made/" + case.encode() + b" HTTP/1.1\r\nhost: a.test\r\n" + behind)
        for _ in range(count):
            assert answers.readline() == b"HTTP/1.1 201 Created\r\n"
            while answers.readline() != b"\r\n":
                pass
            assert answers.read(4) == b"made"
    running.wait_log_count(f"bytes.received={size} bytes.sent=4 http.method=POST http.host=a.test http.path=/made/{case} ", count)
    assert running.metric("gw_requests_in_flight") == 0


def test_bytes_of_a_body_that_nobody_reads_over_http2(gateway) -> None:
    running = gateway(CONFIG.replace("EARLY", "9"))
    for path, ended, sizes in (("/made/whole", True, (5, 4)), ("/made/begun", False, (5, 4)), ("/made/padded", True, (3,))):
        peer = h2.connection.H2Connection()
        peer.initiate_connection()
        peer.send_headers(1, [(":method", "POST"), (":scheme", "http"), (":authority", "a.test"), (":path", path)])
        for size in sizes:
            peer.send_data(1, b"x" * size, pad_length=7 if path == "/made/padded" else None)
        if ended:
            peer.end_stream(1)
        with socket.create_connection(("127.0.0.1", running.port), timeout=60) as client:
            client.sendall(peer.data_to_send())
            seen: list[object] = []
            while not any(isinstance(event, h2.events.StreamEnded) for event in seen):
                seen += peer.receive_data(client.recv(65536))
            assert [event.data for event in seen if isinstance(event, h2.events.DataReceived)] == [b"made"]
        running.wait_log(f"bytes.received={sum(sizes)} bytes.sent=4 http.method=POST http.host=a.test http.path={path} ")


def windowed(running, path: str, rest: bytes | None) -> tuple[list[int], bytes]:
    """The answer to a client that opens its window by seven bytes at a time, which it does not begin with. rest: the body,
    sent when the answer has begun; None: the head ends the request. Returns codes of resets, and the body."""
    client = h2.connection.H2Connection()
    client.initiate_connection()
    client.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
    head = [(":method", "POST"), (":scheme", "http"), (":authority", "a.test"), (":path", path)]
    client.send_headers(1, head, end_stream=rest is None)
    resets, body, begun, over = [], b"", False, False
    with socket.create_connection(("127.0.0.1", running.port), 60) as sock:
        sock.sendall(client.data_to_send())
        while not over:
            found = client.receive_data(sock.recv(65536))
            over = any(isinstance(event, h2.events.StreamEnded | h2.events.StreamReset) for event in found)
            for event in found:
                if isinstance(event, h2.events.ResponseReceived):
                    begun = True
                    if rest is not None:
                        client.send_data(1, rest, end_stream=True)
                    # In a packet of its own: the request has ended while its answer waits.
                    sock.sendall(client.data_to_send())
                    client.ping(b"ordering")
                elif isinstance(event, h2.events.DataReceived):
                    body += event.data
                elif isinstance(event, h2.events.StreamReset):
                    resets.append(event.error_code)
                if begun and not over and isinstance(event, h2.events.PingAckReceived | h2.events.DataReceived):
                    client.increment_flow_control_window(7, 1)
            sock.sendall(client.data_to_send())
    return resets, body


@pytest.mark.parametrize("rest", [None, b"", b"x" * 30])
def test_an_answer_that_waits_for_its_window_outlives_the_end_of_its_request(gateway, rest: bytes | None) -> None:
    running = gateway(CONFIG.replace("EARLY", "1").replace("body: made", f"body: {'made' * 20}"))
    assert windowed(running, "/made", rest) == ([], b"made" * 20)


@pytest.mark.skipif(shutil.which("nghttp") is None, reason="nghttp2-client brings it")
def test_nghttp_gets_a_long_direct_response_whole(gateway) -> None:
    """Longer than the window of 65,535 bytes that clients begin with."""
    running = gateway(CONFIG.replace("EARLY", "1").replace("body: made", f"body: {'made' * 100_000}"))
    # 63 bytes and 65,535. Of the smaller ones there are thousands.
    for window in ("6", "16"):
        command = ["nghttp", "-w", window, f"{running.url}/made"]
        assert subprocess.run(command, capture_output=True, check=True, timeout=600).stdout == b"made" * 100_000
