"""TLS handshakes with clients and with backends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import ssl

import pytest
from rig import GET, Rig, on_rig
from tests.engine.link.secure_rig import Collected, Echo, SecureFront
from tests.engine.tls.test_hello import hello
from tests.engine.tls.tls_rig import Peer, client, python_client

from headgate_drivers.tls import session_reused
from headgate_engine.errors import TlsError
from headgate_engine.link.handshake import HandshakeError, SecureClient, SecureServer
from headgate_engine.tls.connection import TlsConnection
from headgate_engine.tls.context import KeptSession, TlsContext


@on_rig()
async def test_a_hello_in_pieces(rig: Rig) -> None:
    front = await SecureFront(rig).start()
    data = hello()
    for step in (1, 7, 100):
        reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
        for at in range(0, len(data), step):
            writer.write(data[at : at + step])
            await writer.drain()
            await asyncio.sleep(0)
        assert (await reader.readexactly(5))[:3] == b"\x16\x03\x03", "a ServerHello"
        writer.close()
    await rig.wait(lambda: len(front.failures) == 3, "they are given up")
    assert {reason for reason, _ in front.failures} == {"closed"}


FAILURES = {
    "plain": (b"GET / HTTP/1.1\r\n\r\n", "plain", b""),
    "an alert": (b"\x15\x03\x01\0\2\2\x28", "alert", b""),
    "spoilt": (b"\x16\x03\x01\0\x05\2\0\0\1\0", "protocol", b""),
    "a name that nobody has": (hello("b.test"), "name", b"\x15\x03\x01\0\2\2\x70"),
    "no end of it": ((b"\x16\x03\x01\0\1\1" + b"\x16\x03\x01\0\1\0" * 9000), "protocol", b""),
}


@pytest.mark.parametrize("case", FAILURES)
def test_what_ends_a_handshake(case: str, caplog: pytest.LogCaptureFixture) -> None:
    data, reason, answer = FAILURES[case]

    @on_rig()
    async def attempt(rig: Rig) -> None:
        caplog.set_level(logging.INFO, "headgate.tls")
        front = await SecureFront(rig).start()
        reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
        writer.write(data)
        try:
            assert await reader.read() == answer
        except ConnectionResetError:
            assert not answer
        writer.close()
        await rig.wait(lambda: front.failures, "it is reported")
        assert [found for found, _ in front.failures] == [reason]
        assert rig.worker.arriving_count() == 0

    attempt(caplog)
    lines = [record for record in caplog.records if record.message == "TLS handshake failed"]
    assert len(lines) == 1
    assert lines[0].__dict__["reason"] == reason
    assert lines[0].__dict__["src.addr"].startswith("127.0.0.1:")


class NoCertificate:
    """A listener that has none."""

    def find(self, name: str | None) -> None:
        raise TlsError("there is none")


@on_rig()
async def test_a_listener_without_a_certificate(rig: Rig) -> None:
    front = await SecureFront(rig).start()
    front.port_object.secure(NoCertificate(), 30.0)
    reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
    writer.write(hello())
    assert await reader.read() == b"\x15\x03\x01\0\2\2\x50", "internal_error"
    writer.close()
    await rig.wait(lambda: front.failures, "it is reported")
    assert front.failures == [("identity", "there is none")]
    assert rig.worker.arriving_count() == 0


class Making:
    """A listener whose settings are being made: `task` ends with `outcome`, or with the error that it is."""

    def __init__(self, rig: Rig, outcome: object) -> None:
        self.go_on = asyncio.Event()
        self.asked = 0
        self._outcome = outcome
        self.task = rig.loop.create_task(self._make())

    async def _make(self) -> object:
        await self.go_on.wait()
        if isinstance(self._outcome, OSError):
            raise self._outcome
        return self._outcome

    def find(self, name: str | None) -> object:
        self.asked += 1
        return self.task


@on_rig()
async def test_handshakes_wait_for_what_is_being_made(rig: Rig) -> None:
    front = await SecureFront(rig, Echo).start()
    names = Making(rig, front.port_object.find(None))
    front.port_object.secure(names, 30.0)
    clients = [rig.loop.create_task(front.open()) for _ in range(3)]
    gone_reader, gone = await asyncio.open_connection("127.0.0.1", front.port)
    for part in (hello()[:50], hello()[50:]):
        gone.write(part)
        await gone.drain()
        await asyncio.sleep(0)
    await rig.wait(lambda: names.asked == 4, "all wait")
    # What comes meanwhile stays in the socket.
    gone.write(b"x" * 100_000)
    assert rig.worker.arriving_count() == 4
    gone.transport.abort()
    names.go_on.set()
    for reader, writer in [await one for one in clients]:
        writer.write(b"abc")
        assert await reader.readexactly(3) == b"abc"
        writer.close()
    assert await gone_reader.read() == b""
    await rig.wait(lambda: rig.worker.arriving_count() == 0, "none is left")


@pytest.mark.parametrize("outcome", [TlsError("no"), OSError("broken"), None])
def test_what_cannot_be_made(outcome: object) -> None:
    @on_rig()
    async def attempt(rig: Rig) -> None:
        front = await SecureFront(rig).start()
        names = Making(rig, outcome)
        front.port_object.secure(names, 30.0)
        reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
        writer.write(hello())
        await rig.wait(lambda: names.asked, "it waits")
        if outcome is None:
            names.task.cancel()
        else:
            names.go_on.set()
        assert await reader.read() == b"\x15\x03\x01\0\2\2\x50", "internal_error"
        writer.close()
        await rig.wait(lambda: front.failures, "it is reported")
        told = "no" if isinstance(outcome, TlsError) else "the certificate was not made"
        assert front.failures == [("identity", told)]
        assert rig.worker.arriving_count() == 0


@on_rig()
async def test_the_time_of_a_handshake_that_waits(rig: Rig) -> None:
    front = await SecureFront(rig).start()
    names = Making(rig, None)
    front.port_object.secure(names, 0.02)
    reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
    writer.write(hello())
    assert await reader.read() == b""
    assert front.failures == [("timeout", "the handshake took too long")]
    names.go_on.set()
    await names.task
    writer.close()


@on_rig()
async def test_a_listener_may_refuse_a_client_behind_the_handshake(rig: Rig) -> None:
    asked: list[object] = []

    def approve(transport: SecureServer) -> None:
        asked.append(transport)
        if len(asked) < 3:
            raise HandshakeError("not this one")

    made: list[Echo] = []

    def protocol() -> Echo:
        made.append(Echo())
        return made[-1]

    front = await SecureFront(rig, protocol).start()
    context = front.port_object.find(None)
    assert isinstance(context, TlsContext)
    context.approve = approve
    for _ in range(2):
        with contextlib.suppress(OSError):       # it may have ended within the client's handshake
            reader, writer = await front.open()
            writer.write(b"hello")
            assert await reader.read() == b""
            writer.close()
    await rig.wait(lambda: len(front.failures) == 2, "they are reported")
    assert front.failures == [("certificate", "not this one")] * 2
    assert (made, rig.worker.arriving_count()) == ([], 0), "nobody sees what they send"
    reader, writer = await front.open()
    writer.write(b"hello")
    assert await reader.readexactly(5) == b"hello"
    writer.close()
    context.approve = None


@on_rig()
async def test_a_client_that_takes_too_long_and_one_that_leaves(rig: Rig) -> None:
    front = SecureFront(rig)
    front.port_object.secure(front.port_object._names, 0.05)
    await front.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
    assert await reader.read() == b""
    writer.close()
    front.port_object.secure(front.port_object._names, 30.0)
    _, writer = await asyncio.open_connection("127.0.0.1", front.port)
    await rig.wait(lambda: rig.worker.arriving_count() == 1, "it has begun")
    writer.close()
    await rig.wait(lambda: len(front.failures) == 2, "both are reported")
    assert [reason for reason, _ in front.failures] == ["timeout", "closed"]
    await rig.wait(lambda: rig.worker.arriving_count() == 0, "none is left")


@on_rig()
async def test_a_drain_ends_handshakes(rig: Rig) -> None:
    front = await SecureFront(rig).start()
    reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
    await rig.wait(lambda: rig.worker.arriving_count() == 1, "it has begun")
    rig.worker.abort_all()
    assert await reader.read() == b""
    await rig.wait(lambda: rig.worker.arriving_count() == 0, "it is over")
    writer.close()


@on_rig(faults=1)
async def test_a_connection_that_cannot_be_made(rig: Rig) -> None:
    """It is logged, and what was counted is counted off."""
    front = await SecureFront(rig).start()

    def broken(_: object) -> None:
        raise LookupError("no plan")

    front.port_object.connection = broken  # type: ignore[method-assign]
    with contextlib.suppress(OSError):       # it may have ended within the client's handshake
        reader, _ = await front.open()
        assert await reader.read() == b""
    await rig.wait(lambda: rig.worker.arriving_count() == 0, "none is left")


def secure_objects() -> int:
    """How many connections with TLS there are."""
    return sum(type(one) in (SecureClient, SecureServer, TlsConnection) for one in gc.get_objects())


@on_rig()
async def test_connections_leave_nothing_for_the_cycle_collector(rig: Rig) -> None:
    """It does not look at what was there when a configuration came into force."""
    front = await SecureFront(rig, Echo).start()
    front.port_object._names.find = lambda _: front.port_object._names.context  # type: ignore[union-attr, method-assign]

    def refuse(_secure: object) -> None:
        raise HandshakeError("not this one")

    async def accepted() -> None:
        found = Collected()
        secure = await front.secure_client(lambda: found, approve=lambda _: None)
        secure.write(b"x")
        await rig.wait(lambda: found.data, "it is back")
        secure.close()
        await rig.wait(lambda: found.lost, "it is over")
        del found.transport        # as Wire.detach() does

    async def refused() -> None:
        for options in ({"approve": refuse}, {"name": "b.test"}):
            with contextlib.suppress(HandshakeError):
                await front.secure_client(Collected, **options)

    for kind in (accepted, refused):
        await kind()
        await rig.wait(lambda: rig.worker.arriving_count() == 0, "none is left")
        gc.collect()
        gc.disable()
        try:
            before = secure_objects()
            for _ in range(20):
                await kind()
            await rig.wait(lambda before=before: secure_objects() <= before, f"all of {kind.__name__} are gone")
        finally:
            gc.enable()


@on_rig()
async def test_more_connections_than_there_is_room_for(rig: Rig) -> None:
    front = await SecureFront(rig).start()
    rig.worker.max_connections = 1
    reader, writer = await front.open()
    writer.write(GET)
    await reader.readuntil(b"\r\n\r\n")
    with pytest.raises(OSError):
        await front.open()
    assert front.failures == []
    assert rig.worker.refused == 1
    writer.close()


@on_rig()
async def test_a_port_without_tls_again(rig: Rig) -> None:
    front = await SecureFront(rig).start()
    front.port_object.secure(None, 1.0)
    reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
    writer.write(GET)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    writer.close()


@on_rig()
async def test_close_notify_is_left_out_for_a_client_that_has_gone_without_one(rig: Rig) -> None:
    front = await SecureFront(rig).start()
    for polite in (False, True):
        peer = Peer(python_client())
        reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
        writer.write(peer.feed(b""))
        while not peer.secure.version() or peer.secure.cipher() is None:
            writer.write(peer.feed(await reader.read(65536)))
        writer.write(peer.send(GET))
        data = b""
        while b"\r\n\r\n" not in data:
            data += peer.receive(await reader.readexactly(1))
        assert data.startswith(b"HTTP/1.1 200 ")
        if polite:
            writer.write(peer.goodbye())
        writer.write_eof()
        data += peer.receive(await reader.read())
        assert peer.ended == polite
        writer.close()


@on_rig()
async def test_sessions_are_resumed(rig: Rig) -> None:
    front = await SecureFront(rig, Echo).start()
    context, kept = client(), KeptSession()
    for reused in (False, True, True):
        found = Collected()
        secure = SecureClient(context, lambda found=found: found, "a.test", session=kept)
        await rig.loop.create_connection(lambda secure=secure: secure, "127.0.0.1", front.port)
        await secure.opened()
        secure.write(b"x")
        await rig.wait(lambda found=found: found.data, "the tickets come before it")
        assert session_reused(secure) == reused
        secure.abort()


@on_rig()
async def test_why_a_backend_is_not_accepted(rig: Rig) -> None:
    front = await SecureFront(rig, Echo).start()
    with pytest.raises(HandshakeError, match=r"^TLS: certificate verify failed: hostname mismatch$"):
        await wrong_name(front)

    def refuse(_secure: object) -> None:
        raise HandshakeError("not this one")

    with pytest.raises(HandshakeError, match=r"^not this one$"):
        await front.secure_client(Collected, approve=refuse)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    rig.servers.append(server)
    secure = SecureClient(client(), Collected, "a.test")
    await rig.loop.create_connection(lambda: secure, "127.0.0.1", server.sockets[0].getsockname()[1])
    with pytest.raises(ConnectionError, match="TLS: "):
        await secure.opened()


async def wrong_name(front: SecureFront) -> None:
    """A client that wants another name than the certificate has, of a server that takes any."""
    front.port_object._names.find = lambda _: front.port_object._names.context  # type: ignore[union-attr, method-assign]
    await front.secure_client(Collected, name="b.test")


@on_rig()
async def test_nobody_waits_any_more(rig: Rig) -> None:
    front = await SecureFront(rig, Echo).start()
    found = Collected()
    secure = SecureClient(client(), lambda: found, "a.test")
    waiting = rig.loop.create_task(secure.opened())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    await rig.loop.create_connection(lambda: secure, "127.0.0.1", front.port)
    await rig.wait(lambda: front.failures or rig.worker.arriving_count() == 0, "it is over")
    assert not hasattr(found, "transport")


@on_rig()
async def test_versions_beside_one_another(rig: Rig) -> None:
    front = await SecureFront(rig, Echo, least="TLS_V1_3").start()

    def old(context: ssl.SSLContext) -> None:
        context.maximum_version = ssl.TLSVersion.TLSv1_2

    with pytest.raises(ssl.SSLError):
        await front.open(python_client(old))
    await rig.wait(lambda: front.failures, "it is reported")
    assert front.failures == [("version", "unsupported protocol")]
