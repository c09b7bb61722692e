"""What tests of retry and others share."""

from __future__ import annotations

import socket
import threading


class Scripted:
    """Answers each request with the next of `answers` (status, body); keeps what it was asked."""

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        self.answers = list(answers)
        self.seen: list[bytes] = []
        self.lock = threading.Lock()

    def __call__(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        while line := stream.readline():
            head = line
            length = 0
            while (line := stream.readline()) not in (b"\r\n", b""):
                head += line
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            body = stream.read(length)
            with self.lock:
                self.seen.append(head + b"\r\n" + body)
                status, text = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            connection.sendall(b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n%s" % (status, len(text), text))
