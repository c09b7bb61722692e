"""What one process of a gateway hands to another: sockets of any number, secrets, and packets that are not understood."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator

import pytest

from headgate.server.handover import (
    MOST_DESCRIPTORS,
    HandedSocket,
    Handover,
    HandoverFailed,
    read_packet,
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
        send_handover(channel[0], given)
        found = receive_handover(channel[1])
        assert (found.session_key, found.tickets) == (KEY, (7, b"secret"))
        assert [(one.use, one.name) for one in found.sockets] == [("port", str(n)) for n in range(count)]
        for one, sock in zip(found.sockets, socks, strict=True):
            assert os.fstat(one.sock.fileno()).st_ino == os.fstat(sock.fileno()).st_ino
            assert not one.sock.get_inheritable(), "programs that the gateway starts have no business with it"
            one.sock.close()


@pytest.mark.parametrize(
    ("packet", "why"),
    [
        ({"format": 2}, "in format 2, not 1"),
        ({"format": 1}, "not understood: KeyError"),
        ({"format": 1, "sockets": [], "sessionKey": "zz", "tickets": [1, ""]}, "not understood: ValueError"),
        ({"format": 1, "sockets": [["port", "a"]], "sessionKey": "", "tickets": [1, ""]}, "not understood: ValueError"),
        ([], "no JSON object"),
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
    with pytest.raises(HandoverFailed, match="no JSON"):
        read_packet(b"{")
