"""The buffering step where the exchange cannot show it: limits that other steps have raised."""

from __future__ import annotations

import pytest
from rig import Rig, on_rig

from headgate_engine.context.request import Reply
from headgate_engine.steps.buffer import BufferStep

POST = b"POST / HTTP/1.1\r\nhost: a.test\r\n"
TOO_LARGE = Reply(413)


@pytest.mark.parametrize(("steps", "status"), [
    ([(5, False)], 200),
    ([(4, False)], 413),
    ([(4, True)], 200),
    ([(4, True), (5, False)], 200),
    ([(5, False), (4, False)], 413),
    ([(3, True), (4, False)], 413),
    ([(5, False), (4, True)], 200),
])
@pytest.mark.parametrize("chunked", [False, True])
@on_rig()
async def test_several_limits(rig: Rig, steps: list[tuple[int, bool]], status: int, chunked: bool) -> None:
    rig.route.request_steps = tuple(BufferStep(limit, fail_open, TOO_LARGE) for limit, fail_open in steps)
    body = b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" if chunked else b"content-length: 5\r\n\r\nhello"
    answer = await rig.ask(POST + body)
    assert (answer.status, answer.body) == (status, b"/ hello" if status == 200 else b"")


@on_rig()
async def test_requests_without_a_body_pass(rig: Rig) -> None:
    rig.route.request_steps = (BufferStep(0, False, TOO_LARGE),)
    assert (await rig.ask(POST + b"content-length: 0\r\n\r\n")).status == 200
    assert (await rig.ask(b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n")).status == 200


def test_a_negative_limit() -> None:
    with pytest.raises(ValueError, match="negative"):
        BufferStep(-1, False, TOO_LARGE)
