"""Targets of a load generator: threads that read requests and answer as a test says."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import h2.config
import h2.connection
import h2.events

from headgate_engine.load.arrivals import Arrivals
from headgate_engine.load.core import LoadTarget
from headgate_engine.load.generator import Generator
from headgate_engine.load.request import LoadRequest

SECOND = 1_000_000_000
LENGTH = re.compile(rb"content-length: (\d+)")
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
Answer = Callable[[bytes], bytes | None]


class Served:
    """What a target has seen. requests: head and body of each, in their order."""

    def __init__(self, listener: socket.socket) -> None:
        self.address = listener.getsockname()
        self.requests: list[bytes] = []
        self.connections = 0
        self.lock = threading.Lock()


def exchange(connection: socket.socket, served: Served, answer: Answer) -> None:
    """Answer requests of HTTP/1.1; None closes the connection in place of an answer."""
    data = b""
    while True:
        end = data.find(b"\r\n\r\n")
        found = LENGTH.search(data[:end]) if end >= 0 else None
        stop = end + 4 + (int(found[1]) if found else 0)
        if end < 0 or len(data) < stop:
            piece = connection.recv(65536)
            if not piece:
                return
            data += piece
            continue
        request, data = data[:stop], data[stop:]
        with served.lock:
            served.requests.append(request)
        told = answer(request)
        if told is None:
            return
        connection.sendall(told)
        if b"connection: close" in told:
            return


def exchange_http2(connection: socket.socket, served: Served, answer: Answer) -> None:
    """The same with HTTP/2; the answer is the body, and None resets the stream."""
    peer = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    peer.initiate_connection()
    connection.sendall(peer.data_to_send())
    bodies: dict[int, bytes] = {}
    while data := connection.recv(65536):
        for event in peer.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                bodies[event.stream_id] = b""
            elif isinstance(event, h2.events.DataReceived):
                bodies[event.stream_id] += event.data
                peer.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                with served.lock:
                    served.requests.append(bodies[event.stream_id])
                told = answer(bodies[event.stream_id])
                if told is None:
                    peer.reset_stream(event.stream_id, 2)
                else:
                    peer.send_headers(event.stream_id, [(":status", "200")])
                    peer.send_data(event.stream_id, told, end_stream=True)
        connection.sendall(peer.data_to_send())


@contextmanager
def target(answer: Answer, http2: bool = False) -> Iterator[Served]:
    """A target on loopback."""
    listener = socket.create_server(("127.0.0.1", 0))
    served = Served(listener)
    open_ones: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            (exchange_http2 if http2 else exchange)(connection, served, answer)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                served.connections += 1
                open_ones.append(connection)
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield served
    finally:
        listener.close()
        for connection in open_ones:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def ran(
    address: tuple[str, int], request: LoadRequest, *, rate: float, seconds: float, connections: int = 1, streams: int = 0,
    timeout: float = 60.0, grace: float = 60.0,
) -> Generator:  # fmt: skip
    """Run a generator to its end."""
    generator = Generator(LoadTarget(socket.AF_INET, address), (request,), connections, streams, timeout=timeout)
    generator.open()
    generator.start(Arrivals(time.monotonic_ns(), rate, int(seconds * SECOND)), grace=grace)
    while not generator.run(time.monotonic_ns() + SECOND // 10):
        pass
    generator.close()
    return generator
