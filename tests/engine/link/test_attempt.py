"""One attempt at a backend: on kept connections, with early answers, and at its end."""

from __future__ import annotations

import pytest
from rig import GET, MS, Rig, Upstream, on_rig

POST = b"POST /a HTTP/1.1\r\nhost: a.test\r\ncontent-length: 5\r\n\r\nhello"


@pytest.mark.parametrize(("request_bytes", "status"), [(GET, 200), (POST, 503)], ids=["idempotent", "not"])
@on_rig()
async def test_a_kept_connection_that_breaks_before_an_answer(rig: Rig, request_bytes: bytes, status: int) -> None:
    async def script(up: Upstream) -> None:
        await up.request()
        await up.reply(b"ok")
        await up.request()
        if up.number == 1:
            up.reset()
        else:
            await up.reply(b"again")

    rig.script = script
    client = await rig.client()
    assert (await client.ask(GET)).status == 200
    answer = await client.ask(request_bytes)
    assert answer.status == status
    assert [request.start for request in rig.seen[1:]] == [request_bytes.split(b"\r\n")[0].decode()] * (
        2 if status == 200 else 1)


@on_rig()
async def test_a_new_connection_that_breaks_is_not_tried_again(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        await up.request()
        up.reset()

    rig.script = script
    assert (await rig.ask(GET)).status == 503
    assert rig.accepted == 1


@on_rig()
async def test_an_answer_before_the_end_of_the_body_goes_on(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        await up.intake.until(b"\r\n\r\n")
        await up.reply(b"no", 403)
        await up.closed()

    rig.script = script
    client = await rig.client()
    await client.send(b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: 100000\r\n\r\nhe")
    assert (await client.answer()).status == 403


@on_rig()
async def test_a_call_that_waits_for_a_connection_leaves_the_queue_with_its_deadline(rig: Rig) -> None:
    rig.pool.max_connections = 1
    rig.route.backend_timeout_ns = 50 * MS

    async def script(up: Upstream) -> None:
        await up.request()
        await up.closed()

    rig.script = script
    one, other = await rig.client(), await rig.client()
    await one.send(GET)
    await rig.wait(lambda: rig.seen, "the first call")
    await other.send(GET)
    await rig.wait(lambda: rig.pool.waiting_count == 1, "the second call")
    assert [(await client.answer()).status for client in (one, other)] == [504, 504]
    await rig.wait(lambda: rig.pool.waiting_count == 0, "the queue")


@on_rig()
async def test_a_client_that_leaves_while_its_call_waits_leaves_the_queue(rig: Rig) -> None:
    rig.pool.max_connections = 1

    async def script(up: Upstream) -> None:
        await up.request()
        await rig.wait(lambda: rig.worker.connection_count() == 1, "the client that left")
        await up.reply(b"ok")

    rig.script = script
    one, other = await rig.client(), await rig.client()
    await one.send(GET)
    await rig.wait(lambda: rig.seen, "the first call")
    await other.send(GET)
    await rig.wait(lambda: rig.pool.waiting_count == 1, "the second call")
    other.reset()
    assert (await one.answer()).status == 200
    assert (rig.pool.waiting_count, len(rig.seen)) == (0, 1)
