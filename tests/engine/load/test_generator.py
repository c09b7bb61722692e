"""The loop of the generator at real sockets: what it sends, what it makes of answers, and what a target cannot hide."""

from __future__ import annotations

import json
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
from tests.engine.load.target_rig import OK, SECOND, ran, target

from headgate_engine.load.arrivals import Arrivals
from headgate_engine.load.core import LoadTarget
from headgate_engine.load.generator import Generator
from headgate_engine.load.request import LoadRequest

GET = LoadRequest("GET", "/a?b", "example.test", [("x-one", "1")])


def sse(*texts: str, end: str = "data: [DONE]\n\n") -> bytes:
    deltas = [json.dumps({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}) for text in texts]
    body = ("".join(f"data: {delta}\n\n" for delta in deltas) + end).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(body) + body


def whole(kind: str, text: str, status: int = 200) -> bytes:
    body = text.encode()
    return f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def chat(stream: bool) -> LoadRequest:
    request = LoadRequest("POST", "/v1/chat/completions", "a", (), b"{}")
    if stream:
        request.judge_stream("completions")
    return request


def call() -> LoadRequest:
    body = b'{"jsonrpc":"2.0","id":1000000000}'
    request = LoadRequest("POST", "/mcp", "a", (), body)
    request.number(body.index(b"1000000000"))
    request.judge_rpc()
    return request


def test_every_request_of_the_rate_is_sent_and_answered() -> None:
    with target(lambda request: OK) as served:
        generator = ran(served.address, GET, rate=200, seconds=1, connections=3)
    ledger = generator.ledger
    assert (ledger.good, ledger.failed, ledger.sent, ledger.errors) == (200, 0, 200, {})
    assert served.requests == [b"GET /a?b HTTP/1.1\r\nhost: example.test\r\nx-one: 1\r\n\r\n"] * 200
    assert served.connections == 3
    assert ledger.bytes_read == 200 * len(OK)
    assert ledger.latency.count == 200
    assert generator.in_flight == 0


# Above this rate it sleeps from one request to the next, and reads afterwards what came meanwhile.
HIGH = 4000
CLOSING = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
LONG = b"HTTP/1.1 200 OK\r\ncontent-length: 40000\r\n\r\n" + bytes(40000)
ENDLESS = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nok"


@pytest.mark.parametrize("answer", [OK, CLOSING, LONG, ENDLESS], ids=["short", "closing", "long", "until-close"])
def test_at_a_high_rate_no_request_and_no_answer_is_lost(answer: bytes) -> None:
    with target(lambda request: answer) as served:
        generator = ran(served.address, GET, rate=HIGH, seconds=0.1, connections=8)
    ledger = generator.ledger
    assert (ledger.good, ledger.failed, ledger.sent, ledger.errors) == (400, 0, 400, {})
    assert len(served.requests) == ledger.latency.count == 400
    assert ledger.bytes_read == 400 * len(answer)
    assert generator.in_flight == 0


def test_at_a_high_rate_long_requests_leave_as_a_whole() -> None:
    """More than a connection takes at once: the rest leaves when there is room."""
    body = bytes(2_000_000)
    with target(lambda request: OK) as served:
        ledger = ran(served.address, LoadRequest("POST", "/", "a", (), body), rate=HIGH, seconds=0.002, connections=20).ledger
    assert (ledger.good, ledger.failed, ledger.errors) == (8, 0, {})
    assert [request.endswith(body) for request in served.requests] == [True] * 8


# So many that one is free whenever a request is due, also on a busy machine.
MANY = 50
# A process of its own: a thread would take the lock of the interpreter, and waits for that would count.
ALONE = f"""
import select, socket
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    ones = [listener.accept()[0] for _ in range({MANY})]
    while ones:
        for one in select.select(ones, [], [])[0]:
            one.sendall({OK!r}) if one.recv(65536) else ones.remove(one)
"""


def test_it_wakes_up_once_for_a_request_and_its_answer() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", ALONE], stdout=subprocess.PIPE) as alone:
        try:
            assert alone.stdout is not None
            address = ("127.0.0.1", int(alone.stdout.readline()))
            before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
            ledger = ran(address, GET, rate=400, seconds=0.5, connections=MANY).ledger
            waits = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before
        finally:
            alone.kill()
    assert (ledger.good, ledger.errors) == (200, {})
    assert waits < 300


def test_at_a_high_rate_a_target_that_is_gone_fails_every_request() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    ledger = ran(address, GET, rate=HIGH, seconds=0.1, connections=2).ledger
    assert (ledger.good, ledger.failed) == (0, 400)


def test_http2_sends_the_same() -> None:
    request = LoadRequest("POST", "/", "a", (), b'{"id":1000000000}')
    request.number(6)
    with target(lambda body: b"ok", http2=True) as served:
        ledger = ran(served.address, request, rate=300, seconds=1, connections=2, streams=4).ledger
    assert (ledger.good, ledger.errors) == (300, {})
    assert len({json.loads(body)["id"] for body in served.requests}) == 300
    assert served.connections == 2


def test_http2_tells_of_streams_that_are_reset() -> None:
    with target(lambda body: None, http2=True) as served:
        ledger = ran(served.address, GET, rate=50, seconds=0.2, streams=2).ledger
    assert ledger.errors == {"stream reset: INTERNAL_ERROR": 10}


@pytest.mark.parametrize("http2", [False, True])
def test_a_stall_of_the_target_shows_in_the_percentiles(http2: bool) -> None:
    """The target stands still for a second; half of the requests that were due then waited for half of it at least."""
    answers = iter(range(1_000_000))

    def answer(request: bytes) -> bytes:
        if next(answers) == 50:
            time.sleep(1.0)
        return b"ok" if http2 else OK

    with target(answer, http2) as served:
        ledger = ran(served.address, GET, rate=100, seconds=2, streams=1 if http2 else 0).ledger
    assert (ledger.good, ledger.failed) == (200, 0)
    assert ledger.latency.most >= SECOND
    waited = sum(count for least, count in ledger.latency.pairs() if least >= 0.49 * SECOND)
    assert waited >= 50
    assert ledger.latency.percentile(76) >= 0.49 * SECOND


def test_a_closed_loop_has_as_many_under_way_as_connections() -> None:
    most, now, lock = 0, 0, threading.Lock()

    def answer(request: bytes) -> bytes:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.005)
        with lock:
            now -= 1
        return OK

    with target(answer) as served:
        ledger = ran(served.address, GET, rate=0, seconds=0.5, connections=4).ledger
    assert ledger.failed == 0
    assert ledger.good == len(served.requests) > 4
    assert most <= 4


ANSWERS: dict[str, tuple[Callable[[], LoadRequest], bytes | None, str | None]] = {
    "status": (lambda: GET, whole("text/plain", "no", 503), "status 503"),
    "nothing": (lambda: GET, None, "closed before the answer's end"),
    "half": (lambda: GET, b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nok", "closed before the answer's end"),
    "until-close": (lambda: GET, b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nok", None),
    "no-http": (lambda: GET, b"\x16\x03\x01\x00", "protocol: malformed start line"),
    "stream": (lambda: chat(True), sse("a", "b"), None),
    "stream-cut": (lambda: chat(True), sse("a", "b", end=""), "stream: cut off"),
    "stream-empty": (lambda: chat(True), sse("", ""), "stream: no token"),
    "stream-error": (lambda: chat(True), sse("a", end='data: {"error":{"message":"x"}}\n\n'), "stream: an error event"),
    "stream-none": (lambda: chat(True), whole("application/json", "{}"), "stream: the answer is none"),
    "stream-status": (lambda: chat(True), whole("application/json", "{}", 429), "status 429"),
    "rpc": (call, whole("application/json", '{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"\\"isError\\":true"}]}}'), None),
    "rpc-event": (call, whole("text/event-stream", 'data: {"method":"x"}\n\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'), None),
    "rpc-error": (call, whole("application/json", '{"jsonrpc":"2.0","id":1,"error":{"code":1}}'), "rpc: error"),
    "rpc-tool": (call, whole("application/json", '{"jsonrpc":"2.0","id":1,"result":{"isError":true}}'), "rpc: the tool failed"),
    "rpc-text": (call, whole("application/json", "hello"), "rpc: the response is no JSON"),
    "rpc-nothing": (call, whole("application/json", ""), "rpc: no response"),
    "rpc-no-response": (call, whole("text/event-stream", 'data: {"method":"x"}\n\n'), "rpc: no response"),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_what_an_answer_is_worth(name: str) -> None:
    request, answer, error = ANSWERS[name]
    with target(lambda _: answer) as served:
        ledger = ran(served.address, request(), rate=50, seconds=0.1).ledger
    assert (ledger.good, ledger.errors) == ((5, {}) if error is None else (0, {error: 5}))
    assert ledger.latency.count == ledger.good


def test_tokens_of_streams_are_counted_and_timed() -> None:
    with target(lambda request: sse("", "a", "b", "c")) as served:
        ledger = ran(served.address, chat(True), rate=50, seconds=0.2).ledger
    assert (ledger.good, ledger.tokens) == (10, 30)
    assert (ledger.first_token.count, ledger.between.count) == (10, 20)


def test_each_call_has_an_id_of_its_own() -> None:
    with target(lambda request: whole("application/json", '{"jsonrpc":"2.0","id":1,"result":{}}')) as served:
        ran(served.address, call(), rate=100, seconds=0.5, connections=2)
    ids = {re.search(rb'"id":(\d{10})}', request)[1] for request in served.requests}  # type: ignore[index]
    assert len(ids) == 50


def test_requests_without_a_connection_fail_by_kind() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        address = one.getsockname()
    ledger = ran(address, GET, rate=100, seconds=0.3, grace=5).ledger
    assert ledger.good == 0
    assert ledger.failed == 30
    assert set(ledger.errors) <= {"connect: refused", "not sent by the end of the run"}
    assert ledger.errors["connect: refused"] > 0


def test_what_has_no_answer_is_given_up_with_the_time_it_waited() -> None:
    released = threading.Event()

    def answer(request: bytes) -> bytes:
        released.wait(60)
        return OK

    with target(answer) as served:
        ledger = ran(served.address, GET, rate=10, seconds=0.5, grace=0.5).ledger
        released.set()
    assert ledger.errors == {"no answer by the end of the run": 1, "not sent by the end of the run": 4}
    assert (ledger.latency.count, ledger.good) == (5, 0)
    assert ledger.latency.most >= SECOND


@pytest.mark.parametrize("http2", [False, True])
def test_a_request_has_a_time_limit(http2: bool) -> None:
    released = threading.Event()

    def answer(request: bytes) -> bytes:
        released.wait(60)
        return b"ok" if http2 else OK

    with target(answer, http2) as served:
        ledger = ran(served.address, GET, rate=10, seconds=0.2, timeout=0.2, streams=2 if http2 else 0).ledger
        released.set()
    assert ledger.errors == {"timeout": 2}
    assert ledger.latency.least >= 0.2 * SECOND


def test_a_connection_that_was_closed_is_opened_again() -> None:
    with target(lambda request: b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok") as served:
        ledger = ran(served.address, GET, rate=50, seconds=0.4, connections=2).ledger
    assert (ledger.good, ledger.failed) == (20, 0)
    assert ledger.reconnects == 20
    assert served.connections >= 20


def test_nothing_of_the_warm_up_is_counted() -> None:
    with target(lambda request: OK) as served:
        generator = Generator(LoadTarget(socket.AF_INET, served.address), (GET,), 2)
        generator.open()
        while not generator.run(time.monotonic_ns() + SECOND):
            pass
        generator.start(Arrivals(time.monotonic_ns(), 100, SECOND), warm_up=0.5, grace=60)
        while not generator.run(time.monotonic_ns() + SECOND):
            pass
        generator.close()
    assert (generator.ledger.good, len(served.requests)) == (50, 100)


@pytest.mark.parametrize(("connections", "streams", "timeout"), [(0, 0, 1.0), (100_001, 0, 1.0), (1, -1, 1.0), (1, 10_001, 1.0), (1, 0, 0.0)])
def test_numbers_out_of_range_are_refused(connections: int, streams: int, timeout: float) -> None:
    with pytest.raises(ValueError):
        Generator(LoadTarget(socket.AF_INET, ("127.0.0.1", 1)), (GET,), connections, streams, timeout=timeout)


def test_it_needs_a_request_and_to_be_open() -> None:
    place = LoadTarget(socket.AF_INET, ("127.0.0.1", 1))
    with pytest.raises(ValueError):
        Generator(place, (), 1)
    generator = Generator(place, (GET,), 1)
    with pytest.raises(ValueError, match="not open"):
        generator.run(0)
    with pytest.raises(ValueError, match="not open"):
        generator.start(Arrivals(0, 1, 1))
