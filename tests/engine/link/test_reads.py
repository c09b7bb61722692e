"""Plain sockets that the worker reads by itself."""

from __future__ import annotations

import asyncio
import socket

import pytest
from rig import GET, Client, Rig, Upstream, on_rig

from headgate_engine.context.request import RequestContext
from headgate_engine.link.reads import ReadSet
from headgate_engine.plan.step import AsyncStep

POST = b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: %d\r\n\r\n"


async def kept(rig: Rig) -> Client:
    """A connection that the worker reads by itself, as is the one upstream."""
    client = await rig.client()
    for _ in range(2):
        assert (await client.ask(GET)).status == 200
    return client


def test_an_empty_set_costs_no_descriptor() -> None:
    reads = ReadSet(asyncio.new_event_loop())
    assert len(reads) == 0
    reads.close()
    reads.close()


@on_rig()
async def test_many_connections_are_read_beside_each_other(rig: Rig) -> None:
    clients = [await kept(rig) for _ in range(150)]
    for turn in range(3):
        body = b"%d" % turn
        for client in clients:
            await client.send(POST % len(body) + body)
        for client in clients:
            assert (await client.answer()).body == b"/ " + body


@on_rig()
async def test_a_connection_that_ends_leaves_its_descriptor_to_another(rig: Rig) -> None:
    for turn in range(40):
        client = await kept(rig)
        other = await kept(rig)
        if turn % 2:
            client.reset()
        else:
            client.close()
        third = await rig.client()
        assert (await other.ask(GET)).status == 200
        assert (await third.ask(GET)).status == 200
        assert (await third.ask(GET)).status == 200
        other.close()


@on_rig()
async def test_a_client_that_stops_sending_still_reads_its_answer(rig: Rig) -> None:
    go = asyncio.Event()

    async def slow(up: Upstream) -> None:
        while True:
            request = await up.request()
            if request.target == "/slow":
                await go.wait()
            await up.reply(b"whole")

    rig.script = slow
    client = await kept(rig)
    await client.send(b"GET /slow HTTP/1.1\r\nhost: a.test\r\n\r\n")
    await rig.wait(lambda: any(request.target == "/slow" for request in rig.seen), "the request arrived")
    client.eof()
    await asyncio.sleep(0)
    go.set()
    assert (await client.answer()).body == b"whole"
    assert await client.ended() == b""


@on_rig()
async def test_an_end_within_a_body_is_answered_and_closed(rig: Rig) -> None:
    client = await kept(rig)
    await client.send(POST % 10 + b"half")
    client.eof()
    assert (await client.answer()).status == 400
    assert await client.ended() == b""


@on_rig()
async def test_a_reset_backend_is_named_in_the_answer(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        for _ in range(2):
            await up.request()
            await up.reply()
        await up.request()
        up.reset()

    rig.script = script
    client = await kept(rig)
    answer = await client.ask(POST % 1 + b"x")
    assert answer.status == 503
    assert b"Connection reset by peer" in answer.body


@on_rig()
async def test_a_backend_that_closes_an_idle_connection_is_called_anew(rig: Rig) -> None:
    closing: list[Upstream] = []

    async def script(up: Upstream) -> None:
        closing.append(up)
        while True:
            await up.request()
            await up.reply()

    rig.script = script
    client = await kept(rig)
    closing[0].writer.close()
    await rig.wait(lambda: rig.pool.open == 0, "the end was seen")
    assert (await client.ask(POST % 1 + b"x")).status == 200
    assert rig.accepted == 2


@on_rig()
async def test_a_long_body_waits_for_a_slow_step_in_the_socket(rig: Rig) -> None:
    """Reading pauses while a step is waited for: what was read is kept, the rest stays in the socket."""
    entered, go = asyncio.Event(), asyncio.Event()

    async def wait(ctx: RequestContext) -> None:
        if ctx.method == "POST":
            entered.set()
            await go.wait()

    rig.route.request_steps = (AsyncStep("wait", wait),)
    client = await kept(rig)
    body = bytes(range(256)) * 4096
    sending = rig.spawn("send", client.send(POST % len(body) + body))
    await entered.wait()
    go.set()
    assert (await client.answer()).body == b"/ " + body
    await sending


@on_rig()
async def test_a_slow_reader_holds_its_backend_back(rig: Rig) -> None:
    size = 40_000_000
    sent = 0

    async def script(up: Upstream) -> None:
        nonlocal sent
        while True:
            request = await up.request()
            if request.target != "/long":
                await up.reply()
                continue
            await up.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
            while sent < size:
                await up.send(b"x" * 100_000)
                sent += 100_000

    rig.script = script
    client = await rig.client(receive_buffer=4096)
    for _ in range(2):
        assert (await client.ask(GET)).status == 200
    await client.send(b"GET /long HTTP/1.1\r\nhost: a.test\r\n\r\n")
    before = -1
    while before != sent:      # until nothing moves any more
        before = sent
        await asyncio.sleep(0.2)
    assert sent < size
    assert len((await client.answer()).body) == size


@pytest.mark.parametrize("pipelined", [2, 50])
@on_rig()
async def test_requests_sent_at_once_are_answered_in_their_order(rig: Rig, pipelined: int) -> None:
    client = await kept(rig)
    await client.send(b"".join(b"GET /%d HTTP/1.1\r\nhost: a.test\r\n\r\n" % number for number in range(pipelined)))
    for number in range(pipelined):
        assert (await client.answer()).body == b"/%d " % number


@on_rig()
async def test_a_unix_socket_is_read_the_same_way(rig: Rig) -> None:
    from headgate_engine.link.protocols import connection_factory

    ours, theirs = socket.socketpair()
    for one in (ours, theirs):
        one.setblocking(False)
    await rig.loop.connect_accepted_socket(connection_factory(rig.worker, "bind/1"), theirs)
    client = Client(ours)
    rig.clients.append(client)
    for _ in range(3):
        assert (await client.ask(GET)).status == 200
