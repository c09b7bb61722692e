"""Listening sockets of all ports."""

from __future__ import annotations

import socket

import pytest
from tests.end_to_end.running import free_port

from headgate.config.load import TextSource, load
from headgate.ir.gateway import Gateway
from headgate.server.bound_sockets import BoundSockets
from headgate.server.failures import ReloadFailed


def gateway(*ports: int) -> Gateway:
    binds = ", ".join(f"{{port: {port}, listeners: [{{name: a}}]}}" for port in ports)
    return load(TextSource(f"binds: [{binds}]")).gateway


def test_new_ports_are_opened_and_closed() -> None:
    sockets, first, second = BoundSockets(), free_port(), free_port()
    opened = sockets.open(gateway(first))
    assert opened == set(sockets.by_key)
    more = sockets.open(gateway(first, second))
    assert len(more) == 1
    assert not more & opened
    socket.create_connection(("127.0.0.1", second)).close()
    assert sockets.close({*more, "gone"}) == more
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", second))
    sockets.close(opened)


def test_with_one_that_is_taken_none_is_opened() -> None:
    sockets, port = BoundSockets(), free_port()
    with socket.create_server(("0.0.0.0", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(ReloadFailed, match="in use") as caught:
            sockets.open(gateway(port, number))
    assert caught.value.ports == {number}
    assert sockets.by_key == {}
