"""What is kept of a body: it comes out in order, in pieces of the size that is wanted."""

from __future__ import annotations

import pytest
from rig import Rig, on_rig
from tests.engine.link.processing_rig import Session, sessions

from headgate_engine.context.headers import MessageHead
from headgate_engine.link.processed import GATHERS
from headgate_engine.plan.step import SUSPEND_VERDICT

BODY = b"abcdefghij"


@pytest.mark.parametrize("size", [0, 1, 3, 9, 10, 11, -1])
@on_rig()
async def test_pieces(rig: Rig, size: int) -> None:
    pieces: list[bytes] = []

    class Cutting(Session):
        def begin(self) -> int | None:
            self.stream.suspend()
            self.stream.set_mode(False, GATHERS, 100)
            return SUSPEND_VERDICT

        def end(self, response: bool, trailers: MessageHead | None, /) -> None:
            if size == 0:
                assert self.stream.gathered(False, 0) == b""
            while piece := self.stream.gathered(False, size or 4):
                pieces.append(piece)
                self.stream.send(False, piece)
            assert self.stream.gathered(True) == b""
            self.stream.end(False)
            self.stream.go_on()

    sessions(rig, Cutting)
    answer = await rig.ask(b"POST /p HTTP/1.1\r\nhost: a.test\r\ncontent-length: 10\r\n\r\n" + BODY)
    assert answer.body == b"/p " + BODY
    step = size or 4
    assert pieces == ([BODY] if step < 0 else [BODY[at : at + step] for at in range(0, 10, step)])
