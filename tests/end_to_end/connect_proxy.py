"""A proxy that opens tunnels (CONNECT), for tests."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable


class ConnectProxy:
    """Leads every authority to the port of `places`. `asked`: the heads that it got. `answer`: sent instead of a 200.

    `before_answer` is called before anything is answered.
    """

    def __init__(self, places: dict[str, int], tls: ssl.SSLContext | None = None) -> None:
        self.places = places
        self.asked: list[str] = []
        self.answer: bytes | None = None
        self.before_answer: Callable[[], object] = bool
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, KeyError), contextlib.ExitStack() as stack:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            stack.enter_context(connection)
            head = b""
            while b"\r\n\r\n" not in head:
                piece = connection.recv(65536)
                if not piece:
                    return
                head += piece
            self.asked.append(head.decode())
            self.before_answer()
            if self.answer is not None:
                connection.sendall(self.answer)
                return
            method, authority, _ = head.decode().split(" ", 2)
            assert method == "CONNECT"
            backend = stack.enter_context(socket.create_connection(("127.0.0.1", self.places[authority])))
            connection.sendall(b"HTTP/1.1 200 Connection established\r\nvia: test\r\n\r\n")
            back = threading.Thread(target=copy, args=(backend, connection), daemon=True)
            back.start()
            copy(connection, backend)
            back.join()

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            sink.sendall(piece)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
