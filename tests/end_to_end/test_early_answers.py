"""Answers that are complete before their request is, over HTTP/2: they reach clients that first send all (RFC 9113, section 8.1)."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator

import grpc
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
