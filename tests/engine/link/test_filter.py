"""Several that stand between a request and its client: each gets what the one before it has made."""

from __future__ import annotations

from rig import GET, Rig, on_rig
from tests.engine.link.processing_rig import Session, sessions

from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import Reply
from headgate_engine.link.processed import FEEDS, UNKNOWN_LENGTH

POST = b"POST /p HTTP/1.1\r\nhost: a.test\r\ncontent-length: 3\r\n\r\nabc"


class Marking(Session):
    """Puts its mark behind each body."""

    mark = b""

    def begin(self) -> int | None:
        self.stream.set_request_length(UNKNOWN_LENGTH)
        self.stream.set_mode(False, FEEDS)
        return None

    def head(self, head: MessageHead, content: bool, /) -> None:
        self.told.append(f"head {head.status}")
        self.stream.begin_response(UNKNOWN_LENGTH)
        self.stream.set_mode(True, FEEDS)

    def data(self, response: bool, data: bytes, /) -> None:
        self.stream.send(response, data)

    def end(self, response: bool, trailers: MessageHead | None, /) -> None:
        self.stream.send(response, self.mark)
        self.stream.end(response, trailers)


class Outer(Marking):
    mark = b"1"


class Inner(Marking):
    mark = b"2"


@on_rig()
async def test_the_order_of_two(rig: Rig) -> None:
    found = sessions(rig, Outer, Inner)
    assert (await rig.ask(POST)).body == b"/p abc1221"
    await rig.wait(lambda: [session.told for session in found] == [["head 200", "closed"]] * 2, "both are over")


@on_rig()
async def test_the_one_inside_passes_everything(rig: Rig) -> None:
    sessions(rig, Outer, Session)
    assert (await rig.ask(POST)).body == b"/p abc11"
    sessions(rig, Session, Inner)
    assert (await rig.ask(POST)).body == b"/p abc22"
    large = b"y" * 300_000
    head = b"POST /p HTTP/1.1\r\nhost: a.test\r\ncontent-length: 300000\r\n\r\n"
    assert (await rig.ask(head + large)).body == b"/p " + large + b"22"


@on_rig()
async def test_an_answer_of_the_gateway_passes_both(rig: Rig) -> None:
    class Failing(Session):
        def head(self, head: MessageHead, content: bool, /) -> None:
            self.stream.fail(Reply(403, b"no"), None)

    found = sessions(rig, Session, Failing)
    answer = await rig.ask(GET)
    assert (answer.status, answer.body) == (403, b"no")
    await rig.wait(lambda: all(session.told[-1:] == ["closed"] for session in found), "both are over")
    assert all("own answer" in session.told for session in found)
