"""Listening sockets and how they end."""

from __future__ import annotations

import socket

import pytest

from headgate.net.sockets import open_socket, refuse_handshakes, taken


@pytest.mark.parametrize("host", ["127.0.0.1", "::"])
def test_what_has_begun_is_taken_and_nothing_new(host: str) -> None:
    listening = open_socket(host, 0, shared=True)
    address = ("127.0.0.1", listening.getsockname()[1])
    with socket.create_connection(address) as begun:
        if not refuse_handshakes(listening):
            pytest.skip("the kernel has no socket filters")
        with socket.socket() as late:
            late.settimeout(0.3)
            with pytest.raises(TimeoutError):
                late.connect(address)
        listening.setblocking(True)
        accepted, _ = listening.accept()
        with accepted:
            begun.sendall(b"request")
            assert accepted.recv(100) == b"request"
            accepted.sendall(b"answer")
            assert begun.recv(100) == b"answer"
    listening.setblocking(False)
    with pytest.raises(BlockingIOError):
        listening.accept()
    listening.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)


def test_siblings_go_on() -> None:
    first = open_socket("127.0.0.1", 0, shared=True)
    address = first.getsockname()
    second = open_socket(*address, shared=True)
    assert refuse_handshakes(first)
    first.close()
    second.setblocking(True)
    for _ in range(20):
        with socket.create_connection(address, timeout=60):
            second.accept()[0].close()
    assert taken(*address)
    second.close()
    assert not taken(*address)
