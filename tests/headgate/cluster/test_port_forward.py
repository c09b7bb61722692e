"""Port-forwards through a stand-in whose WebSocket is the `websockets` library's."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from cluster_rig import StandIn, cluster
from websockets.sync.server import ServerConnection

from headgate.cluster.errors import ClusterError
from headgate.cluster.pods import Pod
from headgate.cluster.port_forward import PortForward

__all__ = ["cluster"]
POD = Pod("edge-1", "shop", "Running")
LONG = bytes(range(256)) * 20_000


@pytest.fixture
def echo() -> Iterator[int]:
    """A service that sends back what it gets, to any number of clients."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(one: socket.socket) -> None:
        with one:
            while data := one.recv(65536):
                one.sendall(data)

    def accept() -> None:
        while True:
            try:
                one, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(one,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def exchange(port: int, data: bytes) -> bytes:
    """Send bytes, and read as many."""
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        threading.Thread(target=client.sendall, args=(data,), daemon=True).start()
        found = bytearray()
        while len(found) < len(data) and (piece := client.recv(65536)):
            found += piece
        return bytes(found)


def everything(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        found = b""
        try:
            while piece := client.recv(65536):
                found += piece
        except ConnectionResetError:
            pass
        return found


def test_bytes_go_both_ways_on_several_connections(cluster: StandIn, echo: int) -> None:
    with PortForward(cluster.api(), POD, echo) as forward:
        for data in (b"one", LONG, b"three"):
            assert hashlib.sha256(exchange(forward.port, data)).digest() == hashlib.sha256(data).digest()
        assert forward.failure is None
    assert cluster.requests == [f"/api/v1/namespaces/shop/pods/edge-1/portforward?ports={echo}"] * 3


def test_a_client_that_reads_late_gets_everything(cluster: StandIn) -> None:
    def flood(connection: ServerConnection, _port: int) -> None:
        for at in range(0, len(LONG), 100_000):
            connection.send(b"\0" + LONG[at : at + 100_000])

    cluster.behave = flood
    with PortForward(cluster.api(), POD, 1) as forward, socket.create_connection(("127.0.0.1", forward.port), 20) as late:
        found = bytearray(late.recv(1))
        while piece := late.recv(4096):
            found += piece
        assert bytes(found) == LONG


def test_messages_in_fragments_with_pings_between(cluster: StandIn) -> None:
    def pieces(connection: ServerConnection, _port: int) -> None:
        connection.send([b"\0", b"a", b"", b"bc"])
        assert connection.ping().wait(10)
        connection.send(b"\0")
        connection.send(b"\0def")

    cluster.behave = pieces
    with PortForward(cluster.api(), POD, 1) as forward:
        assert everything(forward.port) == b"abcdef"
        assert forward.failure is None


def cut(connection: ServerConnection, _port: int) -> None:
    connection.socket.sendall(b"\x82\x7e\x00\xff\0ab")
    connection.socket.shutdown(socket.SHUT_RDWR)


Behaviour = Callable[[ServerConnection, int], None]
FAULTS: dict[str, tuple[Behaviour, str]] = {
    "error channel": (lambda one, _: one.send(b"\x01connection refused"), "connection refused"),
    "unknown channel": (lambda one, _: one.send(b"\x05x"), "channel 5 was not opened"),
    "text": (lambda one, _: one.send("text"), "a text message where bytes are expected"),
    "close with a reason": (lambda one, _: one.close(1011, "the stream was closed with 1011: container is gone"), "the stream was closed with 1011: container is gone"),
    "a cut frame": (cut, "the stream was closed with 1006"),
    "no frame": (lambda one, _: one.socket.sendall(b"\xff\xff\xff\xff"), "the stream was closed with 1002: Invalid opcode"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_stream_ends_the_connection_and_says_why(cluster: StandIn, name: str) -> None:
    cluster.behave, why = FAULTS[name]
    with PortForward(cluster.api(), POD, 15000) as forward:
        assert everything(forward.port) == (b"ab" if name == "a cut frame" else b"")
        assert forward.failure is not None
        assert str(forward.failure).startswith("port 15000 of pod edge-1.shop: ")
        assert why in str(forward.failure)


@pytest.mark.parametrize("status", [401, 403, 404, 502])
def test_a_refusal_is_known_at_once(cluster: StandIn, status: int) -> None:
    cluster.refuse = (status, "pods \"edge-1\" cannot be reached")
    with pytest.raises(ClusterError, match=rf"refused: {status} .*: pods \"edge-1\" cannot be reached"):
        PortForward(cluster.api(), POD, 15000)


def test_a_later_stream_that_is_refused_is_told(cluster: StandIn, echo: int) -> None:
    with PortForward(cluster.api(), POD, echo) as forward:
        assert exchange(forward.port, b"a") == b"a"
        cluster.refuse = (403, "forbidden")
        assert everything(forward.port) == b""
        assert forward.failure is not None
        assert "403 Forbidden: forbidden" in str(forward.failure)


def test_the_port_closes_with_the_forward(cluster: StandIn, echo: int) -> None:
    with PortForward(cluster.api(), POD, echo) as forward:
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", forward.port), 5)
