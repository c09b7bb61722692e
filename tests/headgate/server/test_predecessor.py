"""A process that is to take the place of another one: what it finds, what it says, and an other that is gone."""

from __future__ import annotations

import asyncio
import json
import os
import socket

import pytest

from headgate.net.sockets import LentSocket
from headgate.server.handover import VARIABLE, HandedSocket, Handover, HandoverFailed, send_handover
from headgate.server.predecessor import Predecessor


def begun(*sockets: HandedSocket) -> tuple[socket.socket, Predecessor]:
    """Its end of the channel, and how the new process sees it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(60)
    asyncio.run(send_handover(ours, Handover(list(sockets), b"k" * 32, (1, b"s"))))
    environ = {VARIABLE: str(theirs.detach())}
    found = Predecessor.of(environ)
    assert found is not None
    assert environ == {}
    return ours, found


def test_sockets_are_told_apart() -> None:
    port, lent, admin = (socket.create_server(("127.0.0.1", 0)) for _ in range(3))
    ours, found = begun(
        HandedSocket("port", "key", port), HandedSocket("lent", "unit", lent), HandedSocket("admin", "", admin)
    )
    [own], [unit], [server] = found.ports(), found.lent(), found.servers()
    assert (own.name, own.port, type(own.sock)) == ("key", port.getsockname()[1], socket.socket)
    assert (unit.name, unit.port, type(unit.sock)) == ("unit", lent.getsockname()[1], LentSocket)
    assert (server[0], server[1].getsockname()) == ("admin", admin.getsockname())
    found.refuse("because")
    assert json.loads(ours.recv(4096)) == {"refused": "because"}
    assert ours.recv(4096) == b""
    for sock in (own.sock, unit.sock, server[1], ours, port, lent, admin):
        sock.close()


def test_it_says_what_it_serves_and_waits_for_its_turn() -> None:
    ours, found = begun()

    async def main() -> None:
        taking = asyncio.ensure_future(found.take_over({"b", "a"}))  # noqa: TID251 (a test owns it)
        ours.setblocking(False)
        said = await asyncio.get_running_loop().sock_recv(ours, 4096)
        assert json.loads(said) == {"ready": os.getpid(), "taken": ["a", "b"]}
        assert not taking.done()
        ours.send(b'{"go": true}')
        await taking
        ours.close()

    asyncio.run(main())


def test_it_goes_on_without_one_that_has_ended() -> None:
    ours, found = begun()
    ours.close()
    asyncio.run(found.take_over(()))
    found = begun()[1]
    found.refuse("nobody hears this")


def test_there_may_be_none() -> None:
    assert Predecessor.of({}) is None
    with pytest.raises(HandoverFailed, match="is not a socket"):
        Predecessor.of({VARIABLE: "nonsense"})


def test_it_is_told_that_it_is_not_understood() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.send(b'{"format": 9}')
    with pytest.raises(HandoverFailed, match="format 9"):
        Predecessor.of({VARIABLE: str(theirs.detach())})
    assert "format 9" in json.loads(ours.recv(4096))["refused"]
    ours.close()


def test_a_worker_forgets_descriptors_that_are_not_its_own() -> None:
    with socket.create_server(("127.0.0.1", 0)) as port:
        ours, found = begun(HandedSocket("port", "key", port))
        numbers = [found.handover.sockets[0].sock.fileno(), found._channel.fileno()]
        found.forget()
        del found
        for number in numbers:
            os.close(number)
        ours.close()
