"""What the client's connection does by itself: interim answers and leave to send a body."""

from __future__ import annotations

import pytest
from rig import GET, Rig, Upstream, on_rig

from headgate_engine.context.request import Reply
from headgate_engine.plan.step import PythonStep

EXPECTING = b"POST / HTTP/1.1\r\nhost: a.test\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n"


@pytest.mark.parametrize(("version", "interim"), [(b"1.1", [103]), (b"1.0", [])])
@on_rig()
async def test_hints_reach_clients_that_can_read_them(rig: Rig, version: bytes, interim: list[int]) -> None:
    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n")
        await up.reply(b"ok")

    rig.script = script
    answer = await rig.ask(GET.replace(b"1.1", version))
    assert (answer.status, answer.body) == (200, b"ok")
    assert [status for status, _ in answer.interim] == interim


@on_rig()
async def test_leave_to_send_the_body_is_given_once(rig: Rig) -> None:
    client = await rig.client()
    await client.send(EXPECTING)
    await client.intake.until(b"HTTP/1.1 100 Continue\r\n\r\n")
    await client.send(b"hello")
    answer = await client.answer()
    assert (answer.body, answer.interim, answer.get("connection")) == (b"/ hello", [], None)
    assert (await client.ask(GET)).status == 200


@on_rig()
async def test_an_answer_without_that_leave_ends_the_connection(rig: Rig) -> None:
    """Nobody knows whether the body follows."""
    rig.route.request_steps = (PythonStep("no", lambda ctx: ctx.respond(Reply(403, b"no")) or 1),)
    client = await rig.client()
    answer = await client.ask(EXPECTING)
    assert (answer.status, answer.interim, answer.get("connection")) == (403, [], "close")
    client.eof()
    assert await client.ended() == b""


@pytest.mark.parametrize("sent", [b"hello", b"he"])
@on_rig()
async def test_a_client_that_does_not_wait_for_leave_keeps_its_connection(rig: Rig, sent: bytes) -> None:
    client = await rig.client()
    await client.send(EXPECTING + sent)
    await client.send(b"hello"[len(sent):])
    assert (await client.answer()).body == b"/ hello"
    assert (await client.ask(GET)).status == 200
