"""What HTTP/2 and gRPC promise, with clients and servers of others: nghttp2's tools, curl, httpx and grpcio."""

from __future__ import annotations

import queue
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent import futures

import grpc
import pytest

pytestmark = pytest.mark.warm

needs_tools = pytest.mark.skipif(
    shutil.which("nghttp") is None or shutil.which("h2load") is None, reason="nghttp2's tools are not installed"
)

CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: hints
  matches: [{path: {pathPrefix: /hints}}]
  backends: [{host: "127.0.0.1:HINTS", policies: {http: {version: HTTP/1.1}}}]
- name: slow
  matches: [{path: {pathPrefix: /slow}}]
  backends: [{host: "127.0.0.1:LATE", policies: {http: {version: HTTP/1.1}}}]
- name: made
  matches: [{path: {pathPrefix: /made}}]
  policies: {directResponse: {status: 200, body: MADE}}
- name: grpc
  matches: [{path: {pathPrefix: /test.Echo}}]
  backends: [{host: "127.0.0.1:GRPC"}]
frontendPolicies: {http: {http2WindowSize: 70001, http2FrameSize: 20001, http2MaxHeaderSize: 9001}}
"""


def configured(made: str = "made", **ports: int) -> str:
    text = CONFIG.replace("MADE", made)
    for name in ("HINTS", "GRPC", "LATE"):
        text = text.replace(name, str(ports.get(name.lower(), 1)))
    return text


def hinting(connection: socket.socket) -> None:
    """A backend of HTTP/1.1 that sends hints before its answer, and trailers behind it."""
    connection.recv(65536)
    connection.sendall(
        b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n"
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\nconnection: close\r\n\r\n"
        b"2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n"
    )


@needs_tools
def test_hints_trailers_and_settings(gateway, upstream) -> None:
    running = gateway(configured(hints=upstream(hinting)))
    done = subprocess.run(
        ["nghttp", "-v", f"{running.url}/hints"], capture_output=True, text=True, check=True, timeout=60)  # fmt: skip
    told = done.stdout
    assert told.index(":status: 103") < told.index("link: </a.css>; rel=preload") < told.index(":status: 200")
    assert told.index(":status: 200") < told.index("x-sum: 7")
    for setting in ("INITIAL_WINDOW_SIZE(0x04):70001", "MAX_FRAME_SIZE(0x05):20001", "MAX_HEADER_LIST_SIZE(0x06):9001"):
        assert f"[SETTINGS_{setting}]" in told
    done = subprocess.run(
        ["curl", "-sv", "--max-time", "60", "--http2-prior-knowledge", f"{running.url}/hints"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "ok"
    assert "< HTTP/2 103" in done.stderr
    assert "< x-sum: 7" in done.stderr


@needs_tools
def test_reloads_under_load_lose_nothing(gateway) -> None:
    running = gateway(configured())
    with subprocess.Popen(
        ["h2load", "-D", "3", "-c", "4", "-m", "10", "--rps", "200", f"{running.url}/made"], stdout=subprocess.PIPE, text=True
    ) as process:
        for number in range(5):
            running.reload(configured(made=f"made {number}"))
        told, _ = process.communicate(timeout=60)
    assert " 0 failed, 0 errored, 0 timeout" in told
    assert " 0 4xx, 0 5xx" in told


@needs_tools
def test_a_drain_lets_answers_end(gateway, upstream) -> None:
    begun, leaving = threading.Semaphore(0), threading.Event()

    def late(connection: socket.socket) -> None:
        connection.recv(65536)
        begun.release()
        leaving.wait(60)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nlate")

    running = gateway(configured(late=upstream(late)))
    commands = (
        ["curl", "-s", "--max-time", "60", "--http2-prior-knowledge", f"{running.url}/slow"],
        ["nghttp", f"{running.url}/slow"],
    )
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    for _ in processes:
        assert begun.acquire(timeout=60)
    running.process.terminate()
    running.wait_log("draining")
    leaving.set()
    assert [process.communicate(timeout=60)[0].strip() for process in processes] == ["late", "late"]
    assert running.process.wait(60) == 0


class Watched:
    """A gRPC server whose connections grow old, and which notes calls that their clients have given up."""

    def __init__(self, age_ms: int | None = None) -> None:
        options = [] if age_ms is None else [
            ("grpc.max_connection_age_ms", age_ms), ("grpc.max_connection_age_grace_ms", 60_000)]  # fmt: skip
        self.given_up = threading.Event()
        self.server = grpc.server(futures.ThreadPoolExecutor(8), options=options)
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", {
            "Unary": grpc.unary_unary_rpc_method_handler(lambda request, _context: b"got " + request),
            "Both": grpc.stream_stream_rpc_method_handler(
                lambda requests, _context: (b"again " + request for request in requests)),
            "Wait": grpc.unary_stream_rpc_method_handler(self._wait),
        }),))  # fmt: skip
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def _wait(self, _request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        context.add_callback(self.given_up.set)
        yield b"begun"
        self.given_up.wait(60)


def test_many_calls_share_connections_and_are_no_flood(gateway) -> None:
    """grpcio answers each small message with frames that carry nothing."""
    backend = Watched()
    running = gateway(configured(grpc=backend.port))
    with grpc.insecure_channel(f"127.0.0.1:{running.port}") as channel:
        call = channel.unary_unary("/test.Echo/Unary")
        for _ in range(100):
            found = [call.future(b"x", timeout=60) for _ in range(40)]
            assert {one.result() for one in found} == {b"got x"}
        messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        answers = channel.stream_stream("/test.Echo/Both")(iter(messages.get, None), timeout=60)
        for number in range(2000):
            messages.put(b"%d" % number)
            assert next(answers) == b"again %d" % number
        messages.put(None)
        assert list(answers) == []
    assert 1 <= running.metric("gw_upstream_connect_duration_seconds_count") <= 3
    backend.server.stop(None)


def test_a_backend_that_sends_goaway_costs_no_call(gateway) -> None:
    backend = Watched(age_ms=100)
    running = gateway(configured(grpc=backend.port))
    with grpc.insecure_channel(f"127.0.0.1:{running.port}") as channel:
        call = channel.unary_unary("/test.Echo/Unary")
        # Connections of ten ages; calls that begin all the time meet their ends.
        while running.metric("gw_upstream_connect_duration_seconds_count") < 10:
            for _ in range(20):
                found = [call.future(b"%d" % number, timeout=60) for number in range(10)]
                assert [one.result() for one in found] == [b"got %d" % number for number in range(10)]
    backend.server.stop(None)


@pytest.mark.parametrize("how", ["cancel", "deadline"])
def test_a_call_that_is_given_up_ends_at_the_backend(gateway, how) -> None:
    backend = Watched()
    running = gateway(configured(grpc=backend.port))
    with grpc.insecure_channel(f"127.0.0.1:{running.port}") as channel:
        answers = channel.unary_stream("/test.Echo/Wait")(b"", timeout=1 if how == "deadline" else 60)
        assert next(answers) == b"begun"
        if how == "cancel":
            answers.cancel()
        with pytest.raises(grpc.RpcError) as caught:
            next(answers)
        assert caught.value.code() == (grpc.StatusCode.CANCELLED if how == "cancel" else grpc.StatusCode.DEADLINE_EXCEEDED)
        assert backend.given_up.wait(60)
    backend.server.stop(None)
