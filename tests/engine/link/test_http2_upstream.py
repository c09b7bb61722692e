"""HTTP/2 with backends: many calls share a connection, and what a backend did not look at is sent again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from h2.events import (
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.settings import SettingCodes
from http2_client import connected
from rig import GET, MS, Rig, on_rig
from tests.engine.link.http2_backend_rig import Backend, backend_of, echo

from headgate_engine.link.http2_upstream import Http2Upstream
from headgate_engine.link.pool import Pool

POST = b"POST /p HTTP/1.1\r\nhost: a.test\r\ncontent-length: 3\r\n\r\nabc"


@on_rig()
async def test_calls_of_many_clients_share_a_connection(rig: Rig) -> None:
    backend = await backend_of(rig)
    waiting: list[int] = []

    def handle(connection: Backend, event: Event) -> None:
        if isinstance(event, StreamEnded):
            waiting.append(event.stream_id)
            if len(waiting) == 20:
                for number in waiting:
                    connection.answer(number, connection.requests[number][":path"].encode())

    backend.handle = handle
    clients = [await rig.client() for _ in range(20)]
    for index, client in enumerate(clients):
        await client.send(GET.replace(b"/ ", b"/%d " % index))
    for index, client in enumerate(clients):
        assert (await client.answer()).body == b"/%d" % index
    assert len(backend.connections) == 1
    (head, *_) = backend.connections[0].requests.values()
    assert (head[":scheme"], head[":authority"], head[":method"]) == ("http", "a.test", "GET")


@on_rig()
async def test_bodies_and_trailers_go_both_ways(rig: Rig) -> None:
    backend = await backend_of(rig)
    seen: list[object] = []

    def handle(connection: Backend, event: Event) -> None:
        if isinstance(event, TrailersReceived):
            seen.append(event.headers)
        if isinstance(event, StreamEnded):
            number = event.stream_id
            connection.h2.send_headers(number, [(":status", "103"), ("link", "<a>")])
            connection.h2.send_headers(number, [(":status", "200")])
            connection.h2.send_data(number, connection.bodies[number][:10])
            connection.h2.send_headers(number, [("sum", "1")], end_stream=True)

    backend.handle = handle
    client = await rig.client()
    await client.send(b"POST / HTTP/1.1\r\nhost: a\r\nte: trailers\r\ntransfer-encoding: chunked\r\n\r\n")
    for _ in range(30):
        await client.send(b"4e20\r\n" + bytes(20000) + b"\r\n")
    await client.send(b"0\r\ncheck: 2\r\n\r\n")
    answer = await client.answer()
    assert (answer.body, answer.trailers, [status for status, _ in answer.interim]) == (bytes(10), [("sum", "1")], [103])
    (connection,) = backend.connections
    assert (len(connection.bodies[1]), seen) == (600_000, [[("check", "2")]])
    assert connection.requests[1].get("te") == "trailers"


@on_rig()
async def test_a_slow_client_stops_its_stream_alone(rig: Rig) -> None:
    backend = await backend_of(rig)

    def handle(connection: Backend, event: Event) -> None:
        if isinstance(event, StreamEnded):
            number = event.stream_id
            if connection.requests[number][":path"] == "/big":
                connection.h2.send_headers(number, [(":status", "200")])
                sending.append(number)
            else:
                connection.answer(number)
        if sending and connection.h2.streams[1].closed:
            sending.clear()
        while sending:
            room = min(connection.h2.local_flow_control_window(1), connection.h2.max_outbound_frame_size)
            if room == 0:
                break
            connection.h2.send_data(1, bytes(room))
            sent[0] += room

    sent, sending = [0], [1][:0]
    backend.handle = handle
    slow = await rig.client(receive_buffer=4096)
    await slow.send(GET.replace(b"/ ", b"/big "))
    await slow.intake.until(b"\r\n\r\n")
    for _ in range(20):
        assert (await rig.ask(GET)).body == b"ok"
    assert sent[0] < 12_000_000
    slow.reset()
    await rig.wait(lambda: rig.pool.open == rig.pool.idle_count, "the stream is given up")
    assert (await rig.ask(GET)).body == b"ok"
    assert len(backend.connections) == 1


@on_rig()
async def test_more_calls_than_streams_open_another_connection(rig: Rig) -> None:
    backend = await backend_of(rig)
    backend.settings = {SettingCodes.MAX_CONCURRENT_STREAMS: 2}
    waiting: list[tuple[Backend, int]] = []

    def handle(connection: Backend, event: Event) -> None:
        if isinstance(event, StreamEnded):
            waiting.append((connection, event.stream_id))

    backend.handle = handle
    clients = [await rig.client() for _ in range(5)]
    for index, client in enumerate(clients):
        await client.send(GET)
        await rig.wait(lambda count=index + 1: len(waiting) == count, "the call")
    assert len(backend.connections) == 3
    for connection, number in waiting:
        connection.answer(number)
    for client in clients:
        assert (await client.answer()).status == 200


@pytest.mark.parametrize("request_", [GET, POST])
@pytest.mark.parametrize("how", ["refused", "goaway"])
@on_rig()
async def test_what_was_not_processed_is_sent_again(rig: Rig, request_: bytes, how: str) -> None:
    backend = await backend_of(rig)
    given_up: list[int] = []

    def handle(connection: Backend, event: Event) -> None:
        if isinstance(event, RequestReceived) and not given_up:
            given_up.append(event.stream_id)
            if how == "refused":
                connection.h2.reset_stream(event.stream_id, 7)
            else:
                connection.transport.write(b"\0\0\x08\7\0\0\0\0\0" + bytes(8))
        elif getattr(event, "stream_id", 0) not in given_up or connection is not backend.connections[0]:
            echo(connection, event)

    backend.handle = handle
    rig.route.retry = None
    answer = await rig.ask(request_)
    # Of a request whose body has begun to leave there is no copy: only a retry policy keeps one.
    assert answer.status == (200 if request_ is GET else 503)
    assert given_up == [1]


@on_rig()
async def test_other_resets_are_failures(rig: Rig) -> None:
    backend = await backend_of(rig)

    def handle(connection: Backend, event: Event) -> None:
        if isinstance(event, RequestReceived):
            connection.h2.reset_stream(event.stream_id, 2)

    backend.handle = handle
    answer = await rig.ask(POST)
    assert (answer.status, b"INTERNAL_ERROR" in answer.body) == (503, True)
    # The connection lives, though it was used before: nothing speaks for asking again, on it or on another.
    assert [(await rig.ask(GET)).status for _ in range(3)] == [503] * 3
    assert [len(one.requests) for one in backend.connections] == [4]


@pytest.mark.parametrize("fields", [[(":status", "200"), ("connection", "close")], [(":status", "200"), ("X", "y")], [(":status", "101")], []])
@on_rig()
async def test_a_malformed_answer_is_one_and_is_asked_for_once(rig: Rig, fields: list[tuple[str, str]]) -> None:
    backend = await backend_of(rig)

    def handle(connection: Backend, event: Event) -> None:
        if isinstance(event, StreamEnded):
            connection.h2.config.validate_outbound_headers = connection.h2.config.normalize_outbound_headers = False
            good = connection.requests[event.stream_id][":path"] == "/good"
            connection.answer(event.stream_id) if good else connection.bare(event.stream_id, fields)

    backend.handle = handle
    assert (await rig.ask(GET.replace(b"/ ", b"/good "))).status == 200
    assert [(await rig.ask(GET)).status for _ in range(3)] == [502] * 3
    assert (await rig.ask(GET.replace(b"/ ", b"/good "))).status == 200
    assert [len(one.requests) for one in backend.connections] == [5]


@on_rig()
async def test_calls_on_a_connection_that_dies_are_sent_again_once(rig: Rig) -> None:
    """Many calls wait for one new connection: that all but the first find it used is no reason to go on for ever."""
    backend = await backend_of(rig)

    def handle(connection: Backend, event: Event) -> None:
        if isinstance(event, StreamEnded):
            if connection.requests[event.stream_id][":path"] == "/good":
                connection.answer(event.stream_id)
            else:
                connection.transport.abort()

    backend.handle = handle
    assert (await rig.ask(GET.replace(b"/ ", b"/good "))).status == 200
    answers = await asyncio.gather(*[rig.ask(GET) for _ in range(20)])
    assert {answer.status for answer in answers} == {503}
    assert sum(len(one.requests) for one in backend.connections) <= 1 + 2 * 20


@on_rig()
async def test_a_client_that_leaves_resets_its_stream(rig: Rig) -> None:
    backend = await backend_of(rig)
    resets: list[int] = []

    def handle(connection: Backend, event: Event) -> None:
        if isinstance(event, StreamReset):
            resets.append(int(event.error_code))

    backend.handle = handle
    client = await rig.client()
    await client.send(GET)
    await rig.wait(lambda: backend.connections and backend.connections[0].requests, "the call")
    client.reset()
    await rig.wait(lambda: resets, "the reset")
    assert resets == [8]
    backend.handle = echo
    assert (await rig.ask(GET)).body == b"/ "
    assert len(backend.connections) == 1


@pytest.mark.parametrize("extended", [True, False])
@on_rig()
async def test_websockets_become_extended_connects(rig: Rig, extended: bool) -> None:
    backend = await backend_of(rig)
    backend.settings = {SettingCodes.ENABLE_CONNECT_PROTOCOL: 1} if extended else {}

    def handle(connection: Backend, event: Event) -> None:
        if isinstance(event, RequestReceived):
            head = connection.requests[event.stream_id]
            assert (head[":method"], head[":protocol"], head[":path"]) == ("CONNECT", "websocket", "/chat")
            assert "sec-websocket-key" not in head
            connection.h2.send_headers(event.stream_id, [(":status", "200"), ("sec-websocket-protocol", "chat")])
            connection.h2.send_data(event.stream_id, b"hello")
        elif isinstance(event, DataReceived):
            connection.h2.send_data(event.stream_id, b"pong", end_stream=True)

    backend.handle = handle
    client = await rig.client()
    await client.send(b"GET /chat HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
                      b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    answer = await client.answer()
    if not extended:
        assert answer.status == 503
        return
    # The key and its proof of RFC 6455 section 1.3.
    assert (answer.status, answer.get("sec-websocket-accept")) == (101, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    assert answer.get("upgrade") == "websocket"
    assert await client.intake.exactly(5) == b"hello"
    await client.send(b"ping")
    assert await client.ended() == b"pong"


@on_rig()
async def test_the_protocol_of_the_client_chooses_and_falls_back(rig: Rig) -> None:
    backend = await backend_of(rig, twin=True)
    client = await connected(rig)
    assert (await rig.ask(GET)).body == b"/ "
    assert backend.connections == []
    assert (await client.ask()).body == b"/ "
    assert len(backend.connections) == 1


HTTP1_ONLY: dict[str, list[bytes]] = {
    "says so": [b"HTTP/1.1 505 No\r\ncontent-length: 0\r\n\r\n"],
    "says so in words": [b"<!DOCTYPE HTML>\n<p>Bad request version", b" ('HTTP/2.0')"],
    "closes": [],
}


@pytest.mark.parametrize("way", HTTP1_ONLY)
@on_rig()
async def test_a_backend_that_speaks_http1_only_gets_that(rig: Rig, way: str) -> None:
    pool = Pool(rig.worker, "twin", b"backend:80", rig.connect_upstream, Http2Upstream(rig.worker))
    asked: list[None] = []
    bodies: list[bytes] = []

    def twin() -> Pool:
        asked.append(None)
        return pool

    rig.pool.make_twin = twin

    async def script(up: Any) -> None:
        first = await up.intake.until(b"\r\n\r\n")
        if first.startswith(b"PRI"):
            for piece in HTTP1_ONLY[way]:
                await up.send(piece)
            up.writer.close()
        else:
            while True:
                assert b"content-length: 4" in first
                bodies.append(await up.intake.exactly(4))
                await up.reply()
                first = await up.intake.until(b"\r\n\r\n")

    rig.script = script
    client = await connected(rig)
    # What cannot be sent twice is not lost either, nor what comes meanwhile.
    numbers = [await client.request("POST", "/", [("content-length", "4")], end=False) for _ in range(2)]
    for number in numbers:
        await client.send(number, b"body", end=True)
    numbers = [*numbers, await client.request("POST", "/", [("content-length", "4")], end=False)]
    await client.send(numbers[2], b"body", end=True)
    answers = [await client.answer(number) for number in numbers]
    assert [(answer.status, answer.body) for answer in answers] == [(200, b"ok")] * 3
    assert bodies == [b"body"] * 3
    assert len(asked) == 1
    assert (pool.opened, pool.open, pool.waiting_count) == (1, 0, 0)


@on_rig()
async def test_a_pool_that_is_closed_while_the_protocol_is_found_out_loses_no_call(rig: Rig) -> None:
    pool = Pool(rig.worker, "twin", b"backend:80", rig.connect_upstream, Http2Upstream(rig.worker))
    rig.pool.make_twin = lambda: pool
    told = asyncio.Event()

    async def script(up: Any) -> None:
        if (await up.intake.until(b"\r\n\r\n")).startswith(b"PRI"):
            told.set()
            await up.rig.wait(lambda: pool.closed, "the end of the pool")
            up.writer.close()
        else:
            await up.reply()

    rig.script = script
    client = await connected(rig)
    number = await client.request()
    await told.wait()
    rig.pool.close()
    assert ((await client.answer(number)).status, pool.waiting_count) == (200, 0)


@on_rig()
async def test_a_call_that_ends_while_the_protocol_is_found_out_is_withdrawn(rig: Rig) -> None:
    pool = Pool(rig.worker, "twin", b"backend:80", rig.connect_upstream, Http2Upstream(rig.worker))
    rig.pool.make_twin = lambda: pool
    told = asyncio.Event()

    async def script(up: Any) -> None:
        first = await up.intake.until(b"\r\n\r\n")
        if first.startswith(b"PRI"):
            await told.wait()
            up.writer.close()
        else:
            await up.reply()

    rig.script = script
    client, gone = await connected(rig), await connected(rig)
    kept = await client.request()
    await rig.wait(lambda: pool.waiting_count == 1, "the first call")
    await gone.request("GET", "/")
    await rig.wait(lambda: pool.waiting_count == 2, "the second call")
    gone.sock.close()
    await rig.wait(lambda: pool.waiting_count == 1, "its end")
    told.set()
    assert (await client.answer(kept)).status == 200


@on_rig()
async def test_an_idle_connection_is_kept_and_closed(rig: Rig) -> None:
    backend = await backend_of(rig)
    rig.pool.idle_timeout_ns = 100 * MS
    assert (await rig.ask(GET)).status == 200
    assert rig.pool.idle_count == 1
    await rig.wait(lambda: rig.pool.open == 0, "the end")
    assert (await rig.ask(GET)).status == 200
    assert len(backend.connections) == 2


@on_rig()
async def test_a_backend_that_breaks_the_protocol_fails_its_calls(rig: Rig) -> None:
    backend = await backend_of(rig)

    def handle(connection: Backend, event: Event) -> None:
        if isinstance(event, RemoteSettingsChanged):
            return
        if isinstance(event, StreamEnded):
            connection.transport.write(b"\0\0\0\0\0\0\0\0\0")

    backend.handle = handle
    answer = await rig.ask(POST)
    assert answer.status == 503
    assert b"protocol error" in answer.body
