"""Processors that are gone, hang, are slow or lie: requests fail as they are to, and nothing is left behind."""

from __future__ import annotations

import base64
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingResponse
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived
from tests.end_to_end.ext_authz_rig import shown
from tests.end_to_end.ext_proc_rig import BodyBackend, ProcessorPeer, content, fields_of, put, unchanged
from tests.end_to_end.running import free_port
from tests.end_to_end.test_ext_proc import ROUTE

pytestmark = pytest.mark.warm

SHORT = {"policies": {"http": {"requestTimeout": "300ms"}}}
LONG = {"policies": {"http": {"requestTimeout": "60s"}}}
HEADERS = {"requestBodyMode": "none", "responseBodyMode": "none"}
BUFFERED = {"requestBodyMode": "buffered", "responseBodyMode": "buffered"}


def config(backend: BodyBackend, port: int, options: dict[str, Any] | None = None, **policy: Any) -> str:
    if options is not None:
        policy["processingOptions"] = options
    return ROUTE.format(policy=shown({"host": f"127.0.0.1:{port}", **policy}), backend=backend.port)


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize("options", [HEADERS, BUFFERED, None])
def test_nobody_is_there(gateway: Any, backend: BodyBackend, options: Any) -> None:
    running = gateway(config(backend, free_port(), options))
    answer = httpx.post(running.url + "/", content=b"a" * 100_000, timeout=60)
    assert answer.status_code == 500
    assert answer.text.startswith("ext_proc failed: status 14: ")
    assert backend.seen == []
    running.reload(config(backend, free_port(), options, failureMode="failOpen"))
    for size in (0, 5, 100_000):
        answer = httpx.post(running.url + "/", content=b"a" * size, timeout=60)
        assert (answer.status_code, answer.text) == (200, "from the backend")
        assert backend.seen[-1].body == b"a" * size


@pytest.mark.parametrize("options", [HEADERS, BUFFERED, None])
@pytest.mark.parametrize("where", ["request_headers", "request_body", "response_headers", "response_body"])
def test_one_that_hangs(gateway: Any, processor: ProcessorPeer, backend: BodyBackend, options: Any, where: str) -> None:
    if options is HEADERS and where.endswith("_body"):
        pytest.skip("bodies are not sent")
    hung = threading.Event()

    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part == where:
            hung.wait(60)
            return
        if options is BUFFERED and part.endswith("_body"):
            yield {part: {}}
        else:
            yield from unchanged(part, message)

    processor.react = react
    try:
        running = gateway(config(backend, processor.port, options, **SHORT))
        if where == "response_body" and options is None:
            with pytest.raises(httpx.RemoteProtocolError):
                httpx.post(running.url + "/", content=b"abc", timeout=60)
        else:
            answer = httpx.post(running.url + "/", content=b"abc", timeout=60)
            assert (answer.status_code, answer.text) == (500, "ext_proc failed: no answer in 0.3 s")
        hung.set()
        wait_for(lambda: processor.ended == len(processor.seen))
        processor.react = lambda part, message: iter([{part: {}}]) if options is BUFFERED else unchanged(part, message)
        # On a busy machine an honest answer may come too late as well.
        wait_for(lambda: httpx.post(running.url + "/", content=b"abc", timeout=60).status_code == 200)
        if where == "request_headers" and options is HEADERS:
            running.reload(config(backend, processor.port, options, failureMode="failOpen", **SHORT))
            hung.clear()
            processor.react = react
            answer = httpx.post(running.url + "/", content=b"abc", timeout=60)
            assert (answer.status_code, backend.seen[-1].body) == (200, b"abc")
    finally:
        hung.set()


LIES: dict[str, tuple[Any, str]] = {
    "malformed": (lambda part, message: iter([b"\xff\xff\xff"]), "the message is not a ProcessingResponse"),
    "oversized": (
        lambda part, message: iter([{part: {"response": {"headerMutation": put(("x", "y" * 5_000_000))}}}]),
        "status 8: a message has more than 4194304 bytes",
    ),
    "out of order": (
        lambda part, message: iter([{"response_headers": {}}]),
        "unexpected response for the headers of the response",
    ),
    "a body before the head": (
        lambda part, message: iter([{"request_body": {}}]), "unexpected response for the body of the request",
    ),
    "trailers that there are not": (
        lambda part, message: iter([{"request_trailers": {}}]),
        "unexpected response for the trailers of the request",
    ),
    "twice": (
        lambda part, message: iter([{part: {}}, {part: {}}]) if part == "request_headers" else iter([]),
        "unexpected response for the headers of the request",
    ),
    "nothing, endlessly": (
        lambda part, message: ({} for _ in range(100_000)), "the processor has sent 1001 empty messages",
    ),
    "metadata, endlessly": (
        lambda part, message: ({"dynamicMetadata": {f"n{n}": "x" * 1000}} for n in range(100_000)),
        "the processor has sent more than 65536 bytes of metadata",
    ),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_one_that_lies(gateway: Any, processor: ProcessorPeer, backend: BodyBackend, lie: str) -> None:
    processor.react, told = LIES[lie]
    running = gateway(config(backend, processor.port, {**BUFFERED, "requestBodyMode": "none"}, **LONG))
    for _ in range(3):
        answer = httpx.post(running.url + "/", content=b"abc", timeout=60)
        assert answer.status_code == 500
        assert answer.text.startswith(f"ext_proc failed: {told}"), answer.text
    wait_for(lambda: processor.ended == len(processor.seen))


def test_a_stream_that_is_not_streamed(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    processor.react = lambda part, message: iter([{part: {"response": {"bodyMutation": {"body": "AAAA"}}}}])
    running = gateway(config(backend, processor.port, {"requestBodyMode": "fullDuplexStreamed", "requestHeaderMode": "skip"}))
    answer = httpx.post(running.url + "/", content=b"abc", timeout=60)
    assert (answer.status_code, answer.text) == (500, "ext_proc failed: a response for the body of the request is not streamed")


@pytest.mark.parametrize("options", [HEADERS, BUFFERED, None])
def test_one_that_leaves_politely(gateway: Any, processor: ProcessorPeer, backend: BodyBackend, options: Any) -> None:
    """It ends the stream with OK: what it has not answered goes on as it is."""
    processor.react = lambda part, message: iter([None])
    running = gateway(config(backend, processor.port, options))
    answer = httpx.get(running.url + "/", timeout=60)
    assert (answer.status_code, answer.text) == (200, "from the backend")
    if options is not None:
        answer = httpx.post(running.url + "/", content=b"abc", timeout=60)
        assert (answer.status_code, backend.seen[-1].body) == (200, b"abc")


def test_one_that_leaves_with_a_part_of_the_body(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    processor.react = lambda part, message: iter([None]) if part.endswith("_body") else iter([{part: {}}])
    for options in (BUFFERED, None):
        running = gateway(config(backend, processor.port, options, failureMode="failOpen"))
        answer = httpx.post(running.url + "/", content=b"abc", timeout=60)
        assert (answer.status_code, answer.text) == (500, "ext_proc failed: the processor has ended the stream")


@pytest.mark.parametrize(("status", "told"), [("0", "the processor has ended the stream"), ("10", "status 10: no more")])
def test_one_that_leaves_at_once_with_an_answer(
    gateway: Any, upstream: Any, backend: BodyBackend, status: str, told: str
) -> None:
    """The last answer and the end of the stream come in one piece: the client is told at once."""
    head = ProcessingResponse(request_headers={}).SerializeToString()

    def leave(connection: socket.socket) -> None:
        speaker = H2Connection(H2Configuration(client_side=False))
        speaker.initiate_connection()
        connection.sendall(speaker.data_to_send())
        got: dict[int, int] = {}
        while data := connection.recv(65536):
            for event in speaker.receive_data(data):
                if not isinstance(event, DataReceived):
                    continue
                number = event.stream_id
                # The head, then the body or its end.
                before, got[number] = got.get(number, 0), got.get(number, 0) + event.data.count(b"abc")
                if before == got[number]:
                    continue
                speaker.send_headers(number, [(":status", "200"), ("content-type", "application/grpc")])
                speaker.send_data(number, struct.pack(">BI", 0, len(head)) + head)
                speaker.send_headers(number, [("grpc-status", status), ("grpc-message", "no more")], end_stream=True)
            connection.sendall(speaker.data_to_send())

    running = gateway(config(backend, upstream(leave), failureMode="failOpen"))
    for _ in range(3):
        answer = httpx.post(running.url + "/", content=b"abc", timeout=60)
        assert (answer.status_code, answer.text) == (500, f"ext_proc failed: {told}")


@pytest.mark.parametrize("where", ["request_headers", "response_headers"])
def test_one_that_is_killed(gateway: Any, backend: BodyBackend, where: str) -> None:
    """The connection breaks while an answer is due; the next request finds the one that took its place."""
    first = ProcessorPeer()
    reached, over = threading.Event(), threading.Event()

    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part == where:
            reached.set()
            over.wait(60)
        yield {part: {}}

    first.react = react
    running = gateway(config(backend, first.port, HEADERS))
    found: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: found.append(httpx.get(running.url + "/", timeout=60)))
    asking.start()
    assert reached.wait(60)
    first.server.stop(0)
    asking.join()
    over.set()
    assert found[0].status_code == 500
    # grpcio cancels the call, or ends its stream before that.
    reasons = ("status 1", "the processor has ended the stream")
    assert found[0].text.startswith(tuple(f"ext_proc failed: {reason}" for reason in reasons))
    second = ProcessorPeer(first.port)
    try:
        wait_for(lambda: httpx.get(running.url + "/").status_code == 200)
    finally:
        second.stop()


def test_an_endless_body_waits_for_the_client(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    """The processor sends as fast as it may, the client does not read: neither it nor the gateway holds much."""
    sent = [0]

    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part != "response_body":
            yield from unchanged(part, message)
            return
        piece = {part: {"response": {"bodyMutation": {"streamedResponse": {"body": content(b"x" * 65536)}}}}}
        while True:
            sent[0] += 65536
            yield piece

    processor.react = react
    running = gateway(config(backend, processor.port, **SHORT))
    with socket.create_connection(("127.0.0.1", running.port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        before = -1
        while before != sent[0]:
            before = sent[0]
            time.sleep(1)
        assert sent[0] < 64 * 1024 * 1024
        # Waiting for the client is no fault of the processor.
        got = 0
        while got < sent[0]:
            got += len(client.recv(1 << 20))
    wait_for(lambda: processor.ended == 1)


def test_a_processor_that_does_not_read_stops_the_client(
    gateway: Any, processor: ProcessorPeer, backend: BodyBackend
) -> None:
    """It answers the head and reads no more of the body: the client waits, then the request fails."""
    hung = threading.Event()

    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part == "request_headers":
            yield {part: {}}
            hung.wait(60)

    processor.react = react
    try:
        running = gateway(config(backend, processor.port, {**HEADERS, "requestBodyMode": "fullDuplexStreamed"}, **SHORT))
        head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000\r\n\r\n"
        with socket.create_connection(("127.0.0.1", running.port)) as client:
            client.settimeout(60)
            client.sendall(head)
            sent = 0
            while not select.select([client], [], [], 0)[0]:
                if select.select([], [client], [], 0.01)[1]:
                    sent += client.send(b"a" * 65536)
            assert client.recv(65536).startswith(b"HTTP/1.1 500 ")
            assert sent < 256 * 1024 * 1024
        running.wait_log("no answer in 0.3 s")
    finally:
        hung.set()


@pytest.mark.parametrize("where", ["request_headers", "response_headers"])
def test_a_client_that_leaves(gateway: Any, processor: ProcessorPeer, backend: BodyBackend, where: str) -> None:
    reached, hung = threading.Event(), threading.Event()

    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part == where:
            reached.set()
            hung.wait(60)
        yield {part: {}}

    processor.react = react
    try:
        running = gateway(config(backend, processor.port, HEADERS))
        with socket.create_connection(("127.0.0.1", running.port)) as client:
            client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            assert reached.wait(60)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        running.wait_log("client closed the connection")
    finally:
        hung.set()
    wait_for(lambda: processor.ended == 1)


def test_a_backend_that_breaks_off(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"some"
        raise ConnectionError

    backend.chunks = chunks
    for options in (BUFFERED, None):
        running = gateway(config(backend, processor.port, options))
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(running.url + "/")
    wait_for(lambda: processor.ended == len(processor.seen))


def test_requests_of_all_kinds_at_once(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    """Streams of one connection do not disturb each other, and nothing is left when all are over."""
    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        kind = fields_of(processor_head(message, part)).get("x-kind", "") if part == "request_headers" else ""
        if kind == "refused":
            yield {"immediateResponse": {"status": {"code": 403}}}
        elif kind == "malformed":
            yield b"\xff"
        elif kind == "leaves":
            yield None
        else:
            yield from unchanged(part, message)

    def processor_head(message: dict[str, Any], part: str) -> dict[str, Any]:
        return {part: message[part]}

    processor.react = react
    backend.chunks = lambda: [b"b" * 200_000]
    running = gateway(config(backend, processor.port))
    statuses = {"plain": 200, "refused": 403, "malformed": 500, "leaves": 500}
    wrong: list[Any] = []

    def work(kind: str) -> None:
        with httpx.Client(timeout=60) as client:
            for _ in range(20):
                answer = client.post(running.url + "/", headers={"x-kind": kind}, content=base64.b64encode(b"a" * 50_000))
                if answer.status_code != statuses[kind] or (kind == "plain" and answer.content != b"b" * 200_000):
                    wrong.append((kind, answer.status_code, answer.text[:100]))

    threads = [threading.Thread(target=work, args=(kind,)) for kind in (*statuses, "plain", "plain")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # One that leaves may be found out before or behind the first of the body.
    assert [one for one in wrong if one[0] != "leaves" or one[1] != 200] == []
    wait_for(lambda: processor.ended == len(processor.seen))
