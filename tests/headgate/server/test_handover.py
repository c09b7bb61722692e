"""What one process of a gateway hands to another: sockets of any number, secrets, and packets that are not understood."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Iterator

import pytest

from headgate.server import handover
from headgate.server.handover import (
    MAX_PACKET,
    MOST_DESCRIPTORS,
    MOST_NAMES,
    HandedSocket,
    Handover,
    HandoverFailed,
    read_packet,
    ready_packets,
    receive_handover,
    send_handover,
)

KEY = bytes(range(32))


@pytest.fixture
def channel() -> Iterator[tuple[socket.socket, socket.socket]]:
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for one in pair:
        one.settimeout(60)
    yield pair
    for one in pair:
        one.close()


@pytest.mark.parametrize("count", [0, 1, MOST_DESCRIPTORS, MOST_DESCRIPTORS + 1])
def test_everything_arrives(channel: tuple[socket.socket, socket.socket], count: int) -> None:
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.socket()) for _ in range(count)]
        given = Handover([HandedSocket("port", str(n), sock) for n, sock in enumerate(socks)], KEY, (7, b"secret"))
        asyncio.run(send_handover(channel[0], given))
        found = receive_handover(channel[1])
        assert (found.session_key, found.tickets) == (KEY, (7, b"secret"))
        assert [(one.use, one.name) for one in found.sockets] == [("port", str(n)) for n in range(count)]
        for one, sock in zip(found.sockets, socks, strict=True):
            assert os.fstat(one.sock.fileno()).st_ino == os.fstat(sock.fileno()).st_ino
            assert not one.sock.get_inheritable(), "programs that the gateway starts have no business with it"
            one.sock.close()


def test_more_than_the_kernel_holds_goes_as_fast_as_it_is_read(
    channel: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 3,000 ports, say; here of fewer with longer names. The gateway goes on with other things meanwhile."""
    monkeypatch.setattr(handover, "MOST_DESCRIPTORS", 1)
    names = [f"{n:050000}" for n in range(20)]
    channel[0].setblocking(False)

    async def main(sock: socket.socket) -> Handover:
        given = Handover([HandedSocket("port", name, sock) for name in names], KEY, (7, b"secret"))
        sending = asyncio.ensure_future(send_handover(channel[0], given))  # noqa: TID251 (a test owns it)
        await asyncio.sleep(0)
        assert not sending.done()
        found = await asyncio.to_thread(receive_handover, channel[1])
        await sending
        return found

    with socket.socket() as sock:
        found = asyncio.run(main(sock))
    assert [one.name for one in found.sockets] == names
    assert found.tickets == (7, b"secret")
    for one in found.sockets:
        one.sock.close()


@pytest.mark.parametrize("count", [0, 1, MOST_NAMES, MOST_NAMES + 1, 20_000])
def test_ports_of_any_number_are_told_in_packets_of_their_size(count: int) -> None:
    names = {f"[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:{n:05}" for n in range(count)}
    packets = list(ready_packets(names))
    assert max(map(len, packets)) <= MAX_PACKET
    said = [json.loads(packet) for packet in packets]
    assert {name for packet in said for name in packet["taken"]} == names
    assert [packet.get("more", False) for packet in said] == [True] * (len(said) - 1) + [False]
    # Earlier versions read one packet, of which they take what fits.
    assert len(packets) == 1 or len(json.dumps({"ready": 1, "taken": sorted(names)})) > MAX_PACKET - 8
    # One that does not know of further packets refuses the first instead of taking it for all.
    assert ["ready" in packet for packet in said] == [False] * (len(said) - 1) + [True]


@pytest.mark.parametrize(
    ("packet", "why"),
    [
        ({"format": 2}, "in format 2, not 1"),
        ({"format": 1}, "is invalid: KeyError"),
        ({"format": 1, "sockets": [], "sessionKey": "zz", "tickets": [1, ""]}, "is invalid: ValueError"),
        ({"format": 1, "sockets": [["port", "a"]], "sessionKey": "", "tickets": [1, ""]}, "is invalid: ValueError"),
        ([], "not a JSON object"),
    ],
)
def test_what_is_not_understood_is_refused(
    channel: tuple[socket.socket, socket.socket], packet: object, why: str
) -> None:
    channel[0].send(json.dumps(packet).encode())
    with pytest.raises(HandoverFailed, match=why):
        receive_handover(channel[1])


def test_more_than_is_known_is_left_alone(channel: tuple[socket.socket, socket.socket]) -> None:
    packet = {"format": 1, "sockets": [], "sessionKey": "00", "tickets": [1, "01"], "later": {"a": 1}}
    channel[0].send(json.dumps(packet).encode())
    assert receive_handover(channel[1]) == Handover([], b"\0", (1, b"\1"))


def test_the_end_of_the_other_process_is_told() -> None:
    with pytest.raises(HandoverFailed, match="has ended"):
        read_packet(b"")
    with pytest.raises(HandoverFailed, match="not a JSON"):
        read_packet(b"{")
