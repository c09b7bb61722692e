"""A server that says what a test wants, byte by byte, for `gwctl doctor`."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

JSON, HTML, SSE = "application/json", "text/html", "text/event-stream"
# What a client of TLS begins with: a port without TLS answers as it can.
CLIENT_HELLO = b"\x16"
Say = Callable[[socket.socket], None]


def message(status: int, kind: str, text: str, *fields: str) -> bytes:
    head = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(text.encode())}", *fields]
    return ("\r\n".join([*head, "", text])).encode()


def result(number: int, **members: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": members})


INITIALIZED = result(1, protocolVersion="2025-06-18", serverInfo={"name": "near", "version": "1"})


def _request(connection: socket.socket) -> bool:
    found = b""
    while b"\r\n\r\n" not in found:
        if not (piece := connection.recv(65536)):
            return False
        found += piece
        if found[:1] == CLIENT_HELLO:
            return True
    head, _, body = found.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while lengths and len(body) < lengths[0]:
        body += connection.recv(65536)
    return True


@contextlib.contextmanager
def answering(*answers: bytes | Say, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Yield the port of a server that gives the answers in turn, one for each connection, the last one for all others."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = threading.Event()

        def serve() -> None:
            at = 0
            while not done.is_set():
                taken, _ = listener.accept()
                with contextlib.suppress(OSError), taken, tls.wrap_socket(taken, server_side=True) if tls else taken as connection:
                    if not _request(connection):
                        continue
                    answer = answers[min(at, len(answers) - 1)]
                    at += 1
                    connection.sendall(answer) if isinstance(answer, bytes) else answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        try:
            yield port
        finally:
            done.set()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                pass
            thread.join()
