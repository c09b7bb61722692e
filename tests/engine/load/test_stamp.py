"""Reads that say when what they bring has come, however late they are."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from headgate_drivers.load import recv_stamped, stamp


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection over loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
        other, _ = server.accept()
        with other:
            yield one, other


def arrived(reader: socket.socket) -> None:
    """Wait until something can be read, and leave it there."""
    assert reader.recv(1, socket.MSG_PEEK)


def test_a_late_read_says_when_it_came(ends: tuple[socket.socket, socket.socket]) -> None:
    writer, reader = ends
    stamp(reader.fileno())
    end = time.monotonic() + 60
    came = 0
    # The kernel begins to note it a little after it was asked to.
    while came == 0 and time.monotonic() < end:
        before = time.time_ns()
        writer.sendall(b"x")
        arrived(reader)
        there = time.time_ns()
        data, came = recv_stamped(reader.fileno())
        assert data == b"x"
    assert before <= came <= there


def test_a_read_that_was_not_asked_does_not_say_it(ends: tuple[socket.socket, socket.socket]) -> None:
    writer, reader = ends
    writer.sendall(b"abc")
    arrived(reader)
    assert recv_stamped(reader.fileno()) == (b"abc", 0)


def test_nothing_to_read_is_told(ends: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(BlockingIOError):
        recv_stamped(ends[0].fileno())
    with pytest.raises(OSError):
        stamp(-1)
