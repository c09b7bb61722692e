"""HTTP/2 with clients: many requests on one connection, each as if it had one of its own."""

from __future__ import annotations

import asyncio
import select
from typing import Any

import pytest
from h2.settings import SettingCodes
from http2_client import Answer, Fields, Http2Client, connected
from rig import GET, MS, Rig, Upstream, on_rig

from headgate_drivers.http2 import Http2Peer
from headgate_engine.context.request import Reply
from headgate_engine.http2.limits import Http2Limits
from headgate_engine.plan.step import AsyncStep, PythonStep


@on_rig()
async def test_many_requests_share_a_connection(rig: Rig) -> None:
    client = await connected(rig)
    numbers = [await client.request(path=f"/{index}") for index in range(50)]
    for index, number in enumerate(numbers):
        answer = await client.answer(number)
        assert (answer.status, answer.body, answer.error) == (200, b"/%d " % index, None)
        assert "date" in dict(answer.fields)
    assert rig.worker.connection_count() == 1


@pytest.mark.parametrize("size", [1, 24, 25, 60])
@on_rig()
async def test_a_preface_in_pieces_is_still_one(rig: Rig, size: int) -> None:
    client = Http2Client((await rig.client()).sock)
    client.h2.initiate_connection()
    client.answers[1] = Answer()
    client.h2.send_headers(1, [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/")], end_stream=True)
    data = client.h2.data_to_send()
    for at in range(0, len(data), size):
        await rig.loop.sock_sendall(client.sock, data[at : at + size])
        await asyncio.sleep(0)
    assert (await client.answer(1)).body == b"/ "


@on_rig()
async def test_what_only_begins_like_a_preface_is_http1(rig: Rig) -> None:
    client = await rig.client()
    for piece in (b"P", b"R", b"I / HTTP/1.1\r\nhost: a.te", b"st\r\n\r\n"):
        await client.send(piece)
        await asyncio.sleep(0.01)
    assert (await client.answer()).body == b"/ "
    assert (await client.ask(GET)).status == 200


@pytest.mark.parametrize("length", [True, False])
@on_rig()
async def test_bodies_go_up_and_down(rig: Rig, length: bool) -> None:
    client = await connected(rig)
    body = bytes(range(256)) * 4000
    fields = [("content-length", str(len(body)))] if length else []
    numbers = [await client.request("POST", f"/{index}", fields, end=False) for index in range(3)]
    for number in numbers:
        await client.send(number, body, end=True)
    for index, number in enumerate(numbers):
        answer = await client.answer(number)
        assert answer.status == 200
        assert answer.body == b"/%d " % index + body
    assert all((message.get("content-length") is not None) is length for message in rig.seen)


@on_rig()
async def test_trailers_and_hints_pass_both_ways(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n")
        await up.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n2\r\nok\r\n0\r\nsum: 1\r\n\r\n")

    rig.script = script
    client = await connected(rig)
    number = await client.request("POST", fields=[("te", "trailers")], end=False)
    await client.send(number, b"abc")
    client.h2.send_headers(number, [("check", "2")], end_stream=True)
    await client.flush()
    answer = await client.answer(number)
    assert (answer.interim, answer.status, answer.body, answer.trailers) == ([103], 200, b"ok", [("sum", "1")])
    assert {name for name, _ in answer.fields}.isdisjoint({"connection", "transfer-encoding"})
    (seen,) = rig.seen
    assert (seen.body, seen.trailers, seen.get("te")) == (b"abc", [("check", "2")], "trailers")


@on_rig()
async def test_answers_without_content(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        while True:
            request = await up.request()
            status = 204 if request.target == "/204" else 200
            await up.send(b"HTTP/1.1 %d X\r\n%s\r\n" % (status, b"" if status == 204 else b"content-length: 7\r\n"))

    rig.script = script
    client = await connected(rig)
    head = await client.ask("HEAD")
    assert (head.status, dict(head.fields)["content-length"], head.body) == (200, "7", b"")
    none = await client.ask(path="/204")
    assert (none.status, "content-length" in dict(none.fields)) == (204, False)


@on_rig()
async def test_leave_to_send_a_body(rig: Rig) -> None:
    client = await connected(rig)
    number = await client.request("POST", fields=[("expect", "100-continue"), ("content-length", "2")], end=False)
    while not client.answers[number].interim:
        await client.read()
    await client.send(number, b"hi", end=True)
    answer = await client.answer(number)
    assert (answer.interim, answer.body) == ([100], b"/ hi")


@pytest.mark.parametrize("fields", [
    [("connection", "close")], [("transfer-encoding", "chunked")], [("Upper", "x")], [("a", "b\r\nc: d")], [("host", "other")],
    [("content-length", "1"), ("content-length", "1")]])
@on_rig()
async def test_malformed_requests_reach_no_backend(rig: Rig, fields: Fields) -> None:
    client = await connected(rig)
    answer = await client.ask(fields=fields)
    assert answer.status == 400
    assert (await client.ask()).status == 200
    assert len(rig.seen) == 1


@on_rig()
async def test_a_client_that_gives_up_ends_the_call(rig: Rig) -> None:
    gone = asyncio.Event()

    async def script(up: Upstream) -> None:
        request = await up.request()
        if request.target == "/slow":
            await up.closed()
            gone.set()
        else:
            await up.reply()

    rig.script = script
    client = await connected(rig)
    slow = await client.request(path="/slow")
    await rig.wait(lambda: rig.seen, "the call")
    client.h2.reset_stream(slow, 8)
    await client.flush()
    await asyncio.wait_for(gone.wait(), 60)
    assert (await client.ask()).status == 200


@on_rig()
async def test_an_answer_before_the_body_gives_the_rest_up(rig: Rig) -> None:
    rig.route.request_steps = (PythonStep("no", lambda ctx: ctx.respond(Reply(403, b"no")) or 1),)
    client = await connected(rig)
    number = await client.request("POST", fields=[("content-length", "100000")], end=False)
    answer = await client.answer(number)
    assert (answer.status, answer.body) == (403, b"no")
    # The reset that follows says that nothing went wrong.
    while client.h2.streams.get(number) and not client.h2.streams[number].closed:
        await client.read()
    assert (await client.ask()).status == 403


@on_rig()
async def test_a_short_body_behind_its_answer_is_no_failure(rig: Rig) -> None:
    """Clients that write all of a request before they read take a reset for one (httpx, curl)."""
    rig.route.request_steps = (PythonStep("no", lambda ctx: ctx.respond(Reply(403, b"no")) or 1),)
    client = await connected(rig)
    for fields in ([("content-length", "3000")], []):
        number = await client.request("POST", fields=fields, end=False)
        assert (await client.answer(number)).status == 403
        for piece in range(3):
            await client.send(number, b"x" * 1000, end=piece == 2)
        assert (await client.ask()).status == 403
        assert (client.answers[number].error, client.goaways) == (None, [])
    assert rig.seen == []


async def send_and_read(client: Http2Client, number: int, size: int) -> int:
    """Send content until the gateway has ended the stream; the bytes of it. Reads nothing unless something is there."""
    sent = 0
    while not client.h2.streams[number].closed:
        await client.send(number, b"x" * size)
        sent += size
        await asyncio.sleep(0.002)          # the gateway's turn
        while select.select([client.sock], [], [], 0)[0]:
            await client.read()
    return sent


@on_rig()
async def test_a_long_body_behind_its_answer_is_dropped_up_to_a_bound(rig: Rig) -> None:
    rig.route.request_steps = (PythonStep("no", lambda ctx: ctx.respond(Reply(403, b"no")) or 1),)
    client = await connected(rig)
    number = await client.request("POST", fields=[("content-length", str(1 << 30))], end=False)
    assert (await client.answer(number)).status == 403
    sent = await send_and_read(client, number, 1 << 17)
    assert 16 << 20 <= sent <= 18 << 20
    assert (await client.ask()).status == 403


@on_rig()
async def test_a_body_that_drips_behind_its_answer_has_its_time(rig: Rig) -> None:
    rig.bind.body_timeout_ns = 3000 * MS
    rig.route.request_steps = (PythonStep("no", lambda ctx: ctx.respond(Reply(403, b"no")) or 1),)
    client = await connected(rig)
    number = await client.request("POST", end=False)
    assert (await client.answer(number)).status == 403
    assert 100 <= await send_and_read(client, number, 1) <= 60_000
    assert (await client.ask()).status == 403


@on_rig()
async def test_a_client_that_waits_for_its_window_gets_it_behind_the_answer(rig: Rig) -> None:
    """What a step has read part of: the window that was kept back meanwhile opens, and the rest is dropped."""
    sent = asyncio.Event()

    async def refused_later(_ctx: Any) -> Reply:
        await sent.wait()
        return Reply(403, b"no")

    rig.route.request_steps = (AsyncStep("slow", refused_later),)
    client = await connected(rig)
    number = await client.request("POST", end=False)
    await client.send(number, b"x" * 65535)
    sent.set()
    await client.send(number, b"x" * 500_000, end=True)
    answer = await client.answer(number)
    assert (answer.status, answer.error) == (403, None)
    assert (await client.ask()).status == 403


@on_rig()
async def test_a_body_that_never_ends_behind_its_answer_is_given_up(rig: Rig) -> None:
    rig.bind.body_timeout_ns = 200 * MS
    rig.route.request_steps = (PythonStep("no", lambda ctx: ctx.respond(Reply(403, b"no")) or 1),)
    client = await connected(rig)
    number = await client.request("POST", end=False)
    assert (await client.answer(number)).status == 403
    while not client.h2.streams[number].closed:
        assert await client.read()
    assert client.goaways == []


@on_rig()
async def test_a_slow_body_is_refused_and_others_go_on(rig: Rig) -> None:
    rig.bind.body_timeout_ns = 300 * MS
    client = await connected(rig)
    number = await client.request("POST", fields=[("content-length", "5")], end=False)
    answer = await client.answer(number)
    assert answer.status == 408
    assert (await client.ask()).status == 200


@on_rig()
async def test_a_reader_that_takes_nothing_is_given_up(rig: Rig) -> None:
    rig.bind.body_timeout_ns = 300 * MS

    async def script(up: Upstream) -> None:
        await up.request()
        await up.reply(bytes(3_000_000))

    rig.script = script
    client = await connected(rig)
    client.greedy = False
    number = await client.request()
    answer = await client.answer(number)
    assert answer.status == 200
    assert answer.error == 8
    assert len(answer.body) == 65535


@on_rig()
async def test_a_slow_reader_stops_its_backend_alone(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        request = await up.request()
        await up.reply(bytes(3_000_000) if request.target == "/big" else b"small")

    rig.script = script
    client = await connected(rig)
    client.greedy = False
    client.h2.increment_flow_control_window(10_000_000)
    big = await client.request(path="/big")
    for _ in range(20):
        assert (await client.ask()).body == b"small"
    sent = len(client.answers[big].body)
    assert sent <= 65535
    client.greedy = True
    client.h2.increment_flow_control_window(3_000_000)
    client.h2.increment_flow_control_window(3_000_000, big)
    await client.flush()
    assert len((await client.answer(big)).body) == 3_000_000


@on_rig()
async def test_a_body_that_nobody_reads_stops_in_its_window(rig: Rig) -> None:
    going = asyncio.Event()

    async def hold(ctx: object) -> None:
        await going.wait()

    rig.route.request_steps = (AsyncStep("hold", hold),)
    client = await connected(rig)
    number = await client.request("POST", end=False)
    sent = 0
    while room := min(client.h2.local_flow_control_window(number), client.h2.max_outbound_frame_size):
        client.h2.send_data(number, bytes(room))
        sent += room
        await client.flush()
    client.h2.ping(b"12345678")
    await client.flush()
    while not client.pongs:
        await client.read()
    assert client.h2.local_flow_control_window(number) == 65536 - sent
    going.set()
    await client.send(number, bytes(500_000), end=True)
    assert len((await client.answer(number)).body) == len(b"/ ") + sent + 500_000


@on_rig()
async def test_leaving_is_said_twice(rig: Rig) -> None:
    going = asyncio.Event()

    async def script(up: Upstream) -> None:
        while True:
            await up.request()
            await going.wait()
            await up.reply()

    rig.script = script
    # The h2 package takes any GOAWAY for the end.
    sock, peer = (await rig.client()).sock, Http2Peer(False)
    heard: list[tuple[object, ...]] = []

    async def until(name: str, count: int = 1) -> None:
        while len([event for event in heard if event[0] == name]) < count:
            await rig.loop.sock_sendall(sock, peer.output())
            heard.extend(peer.receive(await rig.loop.sock_recv(sock, 65536)))

    request = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"a")]
    assert peer.request(request) == 1
    peer.end(1)
    await until("settings")
    await rig.wait(lambda: rig.seen, "the call")
    rig.worker.begin_drain()
    assert rig.worker.close_idle() == 0
    await until("goaway", 2)
    assert [event for event in heard if event[0] == "goaway"] == [("goaway", 2**31 - 2, 0), ("goaway", 1, 0)]
    going.set()
    await until("end")
    assert ("data", 1, b"ok") in heard
    assert await rig.loop.sock_recv(sock, 65536) == b""
    sock.close()
    await rig.wait(lambda: rig.worker.connection_count() == 0, "the end")


@on_rig()
async def test_an_idle_connection_leaves_at_once(rig: Rig) -> None:
    rig.bind.idle_timeout_ns = 300 * MS
    client = await connected(rig)
    assert (await client.ask()).status == 200
    await client.end()
    assert client.goaways == [(1, 0)]


@on_rig()
async def test_a_connection_that_time_has_ended_does_not_wait_for_its_client(rig: Rig) -> None:
    rig.bind.idle_timeout_ns = 600_000 * MS
    rig.bind.http2 = Http2Limits(settings_timeout=0.1)
    client = await rig.client()
    # Settings of its own, and no acknowledgement.
    await rig.loop.sock_sendall(client.sock, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
    while await rig.loop.sock_recv(client.sock, 65536):
        pass
    assert rig.worker.connection_count() == 1
    await rig.wait(lambda: rig.worker.connection_count() == 0, "the end")


@on_rig()
async def test_an_idle_connection_is_told_once_when_the_gateway_drains(rig: Rig) -> None:
    client = await connected(rig)
    assert (await client.ask()).status == 200
    rig.worker.begin_drain()
    rig.worker.close_idle()
    # A request that meets the notice is not taken, and its client is told so.
    late = await client.request()
    await client.end()
    assert client.goaways == [(1, 0)]
    assert late > 1
    assert len(rig.seen) == 1
    await rig.wait(lambda: rig.worker.connection_count() == 0, "the end")


@on_rig(faults=1)
async def test_a_fault_of_one_request_is_its_own(rig: Rig) -> None:
    def fail(ctx: object) -> int:
        raise RuntimeError("no")

    client = await connected(rig)
    assert (await client.ask()).status == 200
    rig.route.request_steps = (PythonStep("fail", fail),)
    assert (await client.ask()).status == 500
    rig.route.request_steps = ()
    assert (await client.ask()).status == 200


@on_rig()
async def test_what_a_client_does_wrong_ends_its_requests(rig: Rig) -> None:
    gone = asyncio.Event()

    async def script(up: Upstream) -> None:
        await up.request()
        await up.closed()
        gone.set()

    rig.script = script
    client = await connected(rig)
    await client.request()
    await rig.wait(lambda: rig.seen, "the call")
    await rig.loop.sock_sendall(client.sock, b"\0\0\0\0\0\0\0\0\0")      # DATA on stream 0
    await client.end()
    assert client.goaways == [(1, 1)]
    await asyncio.wait_for(gone.wait(), 60)


@on_rig()
async def test_floods_end_the_connection(rig: Rig) -> None:
    rig.bind.http2 = Http2Limits(resets=20, oddities=20)
    client = await connected(rig)
    for _ in range(40):
        number = await client.request()
        client.h2.reset_stream(number, 8)
    await client.flush()
    await client.end()
    assert client.goaways[-1][1] == 11
    await rig.wait(rig.at_rest, "the calls are over")


@on_rig()
async def test_a_backend_that_breaks_off_breaks_the_stream_alone(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        request = await up.request()
        if request.target == "/broken":
            await up.send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
        else:
            await up.reply()

    rig.script = script
    client = await connected(rig)
    answer = await client.ask(path="/broken")
    assert (answer.body, answer.error) == (b"half", 2)
    assert (await client.ask()).status == 200


@on_rig()
async def test_a_websocket_is_an_upgrade_for_the_backend(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        request = await up.request()
        assert (request.start, request.get("upgrade"), request.get("connection")) == ("GET /chat HTTP/1.1", "websocket", "upgrade")
        assert len(request.get("sec-websocket-key") or "") == 24
        await up.send(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
                      b"sec-websocket-accept: x\r\nsec-websocket-protocol: chat\r\n\r\nhello")
        assert await up.intake.exactly(4) == b"ping"
        await up.send(b"pong")
        assert await up.closed() == b""

    rig.script = script
    client = await connected(rig)
    while SettingCodes.ENABLE_CONNECT_PROTOCOL not in client.h2.remote_settings:
        await client.read()
    number = client.h2.get_next_available_stream_id()
    answer = client.answers[number] = Answer()
    client.h2.send_headers(number, [
        (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":authority", "a.test"), (":path", "/chat"),
        ("sec-websocket-version", "13")])
    await client.flush()
    while answer.body != b"hello":
        assert await client.read()
    assert answer.status == 200
    assert ("sec-websocket-protocol", "chat") in answer.fields
    assert {"sec-websocket-accept", "upgrade", "connection"}.isdisjoint(dict(answer.fields))
    await client.send(number, b"ping")
    while answer.body != b"hellopong":
        assert await client.read()
    await client.send(number, b"", end=True)
    await client.answer(number)
    assert answer.ended
