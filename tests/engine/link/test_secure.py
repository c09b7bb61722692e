"""Connections with TLS: of the engine, and of protocols of asyncio behind it."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl

import pytest
from rig import GET, Rig, on_rig
from tests.engine.link.secure_rig import Collected, Echo, OwnBytes, SecureFront
from tests.engine.tls.tls_rig import OddClient, client, python_client

from headgate_engine.link.handshake import SecureClient
from headgate_engine.link.secure import SecureTransport

BIG = bytes(range(256)) * 4096


@on_rig()
async def test_requests_over_one_connection(rig: Rig) -> None:
    front = await SecureFront(rig).start()
    reader, writer = await front.open()
    for _ in range(5):
        writer.write(GET)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
    assert rig.accepted == 1, "the upstream connection was kept"
    # Byte by byte, each in a record of its own.
    for at in range(len(GET)):
        writer.write(GET[at : at + 1])
        await asyncio.sleep(0)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    writer.close()
    await rig.wait(lambda: rig.worker.connection_count() == 0, "the client has left")
    assert front.failures == []


@on_rig()
async def test_bytes_pass_in_both_directions(rig: Rig) -> None:
    front = await SecureFront(rig, Echo).start()
    reader, writer = await front.open()
    for size in (1, 16384, 16385, len(BIG)):
        writer.write(BIG[:size])
        assert await reader.readexactly(size) == BIG[:size]
    writer.close()


@on_rig()
async def test_our_client_and_our_server(rig: Rig) -> None:
    front = await SecureFront(rig, Echo).start()
    found = Collected()
    secure = await front.secure_client(lambda: found)
    assert found.transport is secure
    assert (secure.version(), secure.requested_name, secure.get_extra_info("ssl_object")) == ("TLSv1.3", "a.test", secure)
    secure.write(BIG)
    secure.writelines([b"one", b"two"])
    await rig.wait(lambda: len(found.data) == len(BIG) + 6, "all of it is back")
    assert found.data == BIG + b"onetwo"
    assert not secure.can_write_eof()
    secure.close()
    await rig.wait(lambda: found.lost, "the connection is over")
    assert found.lost == [None]


@on_rig()
async def test_tls_within_tls(rig: Rig) -> None:
    """As through a proxy that is spoken to over TLS."""
    front = await SecureFront(rig, InnerServer).start()
    found = Collected()
    inner: list[SecureClient] = []

    def begin() -> SecureClient:
        inner.append(SecureClient(client(), lambda: found, "a.test"))
        return inner[0]

    outer = await front.secure_client(begin)
    await inner[0].opened()
    inner[0].write(BIG)
    await rig.wait(lambda: len(found.data) == len(BIG), "all of it is back")
    assert found.data == BIG
    assert isinstance(found.transport, SecureTransport)
    outer.abort()
    await rig.wait(lambda: found.lost, "the inner connection is over too")


class InnerServer(asyncio.Protocol):
    """Speaks TLS with Python's ssl within the connection, and sends back what comes."""

    def __init__(self) -> None:
        from tests.engine.tls.tls_rig import Peer, python_server

        self.peer = Peer(python_server(), server_side=True)
        self.open = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if not self.open:
            self.transport.write(self.peer.feed(data))
            self.open = self.peer.secure.version() is not None and self.peer.fault is None and self.done()
            data = b""
        if self.open and (found := self.peer.receive(data)):
            self.transport.write(self.peer.send(found))

    def done(self) -> bool:
        try:
            self.peer.secure.do_handshake()
        except ssl.SSLError:
            return False
        return True


@on_rig()
async def test_a_client_that_does_not_read(rig: Rig) -> None:
    """What the kernel does not take is queued, the protocol is told, and all of it arrives."""
    states: list[str] = []

    class Flood(Echo):
        def connection_made(self, transport: asyncio.Transport) -> None:
            transport.set_write_buffer_limits(high=0)
            transport.write(BIG * 8)
            states.append("queued" if transport.get_write_buffer_size() else "gone")

        def pause_writing(self) -> None:
            states.append("paused")

        def resume_writing(self) -> None:
            states.append("resumed")

    front = await SecureFront(rig, Flood).start()
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await rig.loop.sock_connect(sock, ("127.0.0.1", front.port))
    reader, writer = await asyncio.open_connection(sock=sock, ssl=python_client(), server_hostname="a.test")
    await rig.wait(lambda: "queued" in states, "it does not all fit")
    assert await reader.readexactly(len(BIG) * 8) == BIG * 8
    await rig.wait(lambda: "resumed" in states, "the queue is empty")
    assert states == ["paused", "queued", "resumed"]
    writer.close()


class Told(Collected):
    """Keeps what is said of the queue."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def pause_writing(self) -> None:
        self.said.append("paused")

    def resume_writing(self) -> None:
        self.said.append("resumed")


class Kept(Echo):
    """Keeps what comes at the server."""

    data = b""

    def data_received(self, data: bytes) -> None:
        Kept.data += data


SLICE = 1 << 20


async def own_bytes(rig: Rig) -> tuple[OwnBytes, Told]:
    """A connection to a server that keeps what it gets."""
    Kept.data = b""
    front = await SecureFront(rig, Kept).start()
    found = Told()
    secure = SecureClient(client(), lambda: found, "a.test")
    own = OwnBytes(secure)
    await rig.loop.create_connection(lambda: own, "127.0.0.1", front.port)
    await secure.opened()
    return own, found


@on_rig()
async def test_a_long_write_is_encrypted_over_several_turns_of_the_loop(rig: Rig) -> None:
    own, found = await own_bytes(rig)
    own.turns = [0]
    own.secure.write(BIG * 8 + b"end")
    own.secure.write(b"behind it")
    assert found.said == ["paused"]
    assert own.secure.get_write_buffer_size() == 7 * SLICE + len(b"endbehind it")
    await rig.wait(lambda: found.said == ["paused", "resumed"], "all of it is encrypted")
    assert own.secure.get_write_buffer_size() == 0
    assert sum(1 for size in own.turns if size > SLICE // 2) == 8
    assert max(own.turns) < SLICE * 1.01
    await rig.wait(lambda: Kept.data.endswith(b"behind it"), "it has come")
    assert Kept.data == BIG * 8 + b"endbehind it"
    own.secure.abort()


@on_rig()
async def test_a_long_write_waits_for_what_the_loop_has_not_sent(rig: Rig) -> None:
    own, found = await own_bytes(rig)
    own.held = 1
    own.secure.write(BIG * 3)
    for _ in range(20):
        await asyncio.sleep(0)
    assert own.secure.get_write_buffer_size() == 2 * SLICE + 1
    own.held = 0
    own.secure.resume_writing()
    await rig.wait(lambda: len(Kept.data) == 3 * SLICE, "the rest has come")
    assert found.said == ["paused", "resumed"]
    own.secure.abort()


@on_rig()
async def test_the_end_comes_behind_a_long_write(rig: Rig) -> None:
    own, _ = await own_bytes(rig)
    own.secure.write(BIG * 3)
    own.secure.close()
    own.secure.write(b"too late")
    assert own.ends == []
    await rig.wait(lambda: len(Kept.data) == 3 * SLICE, "all of it has come")
    assert own.ends == ["all"]


@on_rig()
async def test_a_connection_that_is_lost_within_a_long_write(rig: Rig) -> None:
    own, found = await own_bytes(rig)
    own.secure.write(BIG * 3)
    own.secure.abort()
    assert own.secure.get_write_buffer_size() == 0
    await rig.wait(lambda: found.lost, "it is over")
    assert len(Kept.data) <= SLICE


@on_rig()
async def test_a_client_that_wants_answers_and_reads_none(rig: Rig) -> None:
    """Those of the library to handshakes within a connection do not fill the memory; who reads them gets as many as it wants."""
    lost: list[Exception | None] = []

    class Watched(Echo):
        def connection_lost(self, exc: Exception | None) -> None:
            lost.append(exc)

    front = await SecureFront(rig, Watched).start(send_buffer=4096)
    for reads in (True, False):
        peer, sock = OddClient(old=True), socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await rig.loop.sock_connect(sock, ("127.0.0.1", front.port))
        out = peer.feed(b"")
        while not peer.open:
            await rig.loop.sock_sendall(sock, out)
            out = peer.feed(await rig.loop.sock_recv(sock, 65536))
        await rig.loop.sock_sendall(sock, out)
        asked = 0
        try:
            while not lost and asked < 10_000:
                await rig.loop.sock_sendall(sock, b"".join(peer.hello() for _ in range(100)))
                asked += 100
                if reads:
                    await rig.loop.sock_recv(sock, 65536)
        except ConnectionError:
            assert not reads
        if not reads:
            await rig.wait(lambda: lost, "it is given up")
        assert bool(lost) is not reads, asked
        sock.close()
        await rig.wait(lambda: lost, "it is gone")
        lost.clear()
        peer.close()


@on_rig()
async def test_a_server_that_ends_without_saying_so(rig: Rig) -> None:
    """What came may have been cut short: the protocol of a client learns of an error, not of an end."""

    class Cut(Echo):
        def connection_made(self, transport: asyncio.Transport) -> None:
            transport.write(b"half")
            with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as sock:
                sock.shutdown(socket.SHUT_WR)

    ended: list[str] = []

    class Told(Collected):
        def eof_received(self) -> bool:
            ended.append("end")
            return False

    front = await SecureFront(rig, Cut).start()
    found = Told()
    await front.secure_client(lambda: found)
    await rig.wait(lambda: found.lost, "the connection is over")
    assert (found.data, ended) == (b"half", [])


@on_rig()
async def test_reading_can_be_paused(rig: Rig) -> None:
    front = await SecureFront(rig, Echo).start()
    found = Collected()
    secure = await front.secure_client(lambda: found)
    secure.pause_reading()
    assert not secure.is_reading()
    secure.write(b"later")
    other = Collected()
    again = await front.secure_client(lambda: other)
    again.write(b"now")
    await rig.wait(lambda: other.data == b"now", "another connection is read")
    assert found.data == b""
    secure.resume_reading()
    await rig.wait(lambda: found.data == b"later", "it is read again")
    for one in (secure, again):
        one.abort()


@pytest.mark.parametrize("bare", [SecureTransport.__new__(SecureTransport)])
def test_a_transport_without_a_connection(bare: SecureTransport) -> None:
    bare.write(b"x")
    bare.close()
    bare.abort()
    assert bare.is_closing()
    assert (bare.get_write_buffer_size(), bare.version(), bare.peer_certificate()) == (0, None, None)
    with pytest.raises(ValueError, match="more than the buffer holds"):
        bare.buffer_updated(1 << 20)
    with pytest.raises(NotImplementedError):
        bare.write_eof()
