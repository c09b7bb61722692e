"""Requests whose bodies pass, are gathered or fed on their way, whose responses are changed, refused or broken off."""

from __future__ import annotations

import asyncio

import pytest
from rig import GET, Rig, Upstream, on_rig
from tests.engine.link.processing_rig import Session, sessions

from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import Reply
from headgate_engine.link.processed import FEEDS, GATHERS, PASSES, UNKNOWN_LENGTH
from headgate_engine.plan.step import SUSPEND_VERDICT


def post(body: bytes) -> bytes:
    return b"POST /p HTTP/1.1\r\nhost: a.test\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


class Gathering(Session):
    """Gathers the request body, up to 10 bytes, and sends it on in capitals; what is longer passes."""

    def begin(self) -> int | None:
        self.stream.suspend()
        self.stream.set_mode(False, GATHERS, 10)
        return SUSPEND_VERDICT

    def full(self, response: bool, /) -> None:
        super().full(response)
        self.stream.set_mode(False, PASSES)
        self.stream.go_on()

    def end(self, response: bool, trailers: MessageHead | None, /) -> None:
        super().end(response, trailers)
        start = self.stream.gathered(False, 2)
        self.stream.send(False, start.upper())
        self.stream.send(False, self.stream.gathered(False).upper())
        self.stream.end(False)
        self.stream.go_on()


class Feeding(Session):
    """Makes each piece of the response longer."""

    def head(self, head: MessageHead, content: bool, /) -> None:
        self.told.append(f"head {head.status}")
        self.stream.begin_response(UNKNOWN_LENGTH)
        self.stream.set_mode(True, FEEDS)

    def data(self, response: bool, data: bytes, /) -> None:
        self.stream.send(True, b"<" + data + b">", 0, len(data) + 2)

    def end(self, response: bool, trailers: MessageHead | None, /) -> None:
        super().end(response, trailers)
        self.stream.send(True, b"-last-", 1, 4)
        self.stream.end(True)


class Refusing(Session):
    def head(self, head: MessageHead, content: bool, /) -> None:
        self.stream.fail(Reply(418, b"no"), "it was refused")


class Breaking(Feeding):
    def data(self, response: bool, data: bytes, /) -> None:
        self.stream.send(True, data)
        self.stream.fail(Reply(500, b"late"), "it was broken off")


class Wrong(Session):
    def head(self, head: MessageHead, content: bool, /) -> None:
        raise ZeroDivisionError


@on_rig()
async def test_what_passes(rig: Rig) -> None:
    found = sessions(rig, Session)
    assert (await rig.ask(post(b"abc"))).body == b"/p abc"
    assert (await rig.ask(GET)).body == b"/ "
    await rig.wait(lambda: [session.told for session in found] == [["head 200", "closed"]] * 2, "both are over")


@on_rig()
async def test_a_request_body_is_gathered_and_changed(rig: Rig) -> None:
    found = sessions(rig, Gathering)
    assert (await rig.ask(post(b"abcdef"))).body == b"/p ABCDEF"
    assert found[0].told[0] == "end False"
    large = b"x" * 200_000
    assert (await rig.ask(post(large))).body == b"/p " + large
    assert found[1].told[0] == "full False"


@on_rig()
async def test_a_response_is_fed_and_changed(rig: Rig) -> None:
    found = sessions(rig, Feeding)
    answer = await rig.ask(post(b"abc"))
    assert (answer.body, answer.get("transfer-encoding")) == (b"</p abc>last", "chunked")
    await rig.wait(lambda: found[0].told == ["head 200", "end True", "closed"], "it is over")


@on_rig()
async def test_a_response_that_is_refused(rig: Rig) -> None:
    found = sessions(rig, Refusing)
    answer = await rig.ask(GET)
    assert (answer.status, answer.body) == (418, b"no")
    await rig.wait(lambda: found[0].told[-1:] == ["closed"], "it is over")


@on_rig()
async def test_a_response_that_is_broken_off(rig: Rig) -> None:
    found = sessions(rig, Breaking)
    client = await rig.client()
    await client.send(GET)
    got = await client.ended()
    assert b"200" in got.partition(b"\r\n")[0]
    assert not got.endswith(b"0\r\n\r\n")
    await rig.wait(lambda: found[0].told[-1:] == ["closed"], "it is over")


@on_rig(faults=1)
async def test_a_session_that_raises_is_a_500(rig: Rig) -> None:
    sessions(rig, Wrong)
    assert (await rig.ask(GET)).status == 500


@on_rig()
async def test_a_client_that_leaves_while_a_session_waits(rig: Rig) -> None:
    class Waiting(Session):
        def head(self, head: MessageHead, content: bool, /) -> None:
            self.told.append("head")

    found = sessions(rig, Waiting)
    client = await rig.client()
    await client.send(GET)
    await rig.wait(lambda: found and "head" in found[0].told, "the response")
    client.reset()
    await rig.wait(lambda: found[0].told[-1] == "closed", "it is over")
    session = found[0].stream
    # Whoever comes late does nothing.
    session.send(True, b"x")
    session.end(True)
    session.fail(Reply(500), None)
    session.go_on()
    session.push()
    session.give_up_source()
    assert not session.blocked
    assert not session.request_content


@on_rig()
async def test_pieces_beyond_their_data_are_refused(rig: Rig) -> None:
    found = sessions(rig, Session)
    await rig.ask(GET)
    for at, size in ((0, 3), (3, 1), (-1, 1)):
        with pytest.raises(ValueError, match="beyond the data"):
            found[0].stream.send(True, b"ab", at, size)


@on_rig()
async def test_the_source_is_given_up(rig: Rig) -> None:
    class Enough(Feeding):
        def data(self, response: bool, data: bytes, /) -> None:
            self.stream.send(True, b"enough")
            self.stream.end(True)
            self.stream.give_up_source()

    ended = asyncio.Event()

    async def endless(up: Upstream) -> None:
        await up.request()
        await up.send(b"HTTP/1.1 200 X\r\ncontent-length: 1000000\r\n\r\n" + b"x" * 1000)
        await up.closed()
        ended.set()

    rig.script = endless
    sessions(rig, Enough)
    assert (await rig.ask(GET)).body == b"enough"
    await ended.wait()
