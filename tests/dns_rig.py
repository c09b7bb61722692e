"""A small name server for tests: it answers by UDP and TCP on one port of 127.0.0.1, and counts what it is asked.

`answers` maps a name in lower case to its addresses, or to a function that returns them and is called for each
question, so that an answer may change from one to the next. A name without an entry does not exist (NXDOMAIN, with a
SOA record, RFC 2308). Messages: RFC 1035 section 4.1; the OPT record of EDNS: RFC 6891.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Self

A, SOA, AAAA, OPT, IN = 1, 6, 28, 41, 1
NXDOMAIN = 3
TRUNCATED = 0x0200
# Largest answer by UDP to a question without EDNS (RFC 1035 section 4.2.1).
PLAIN_UDP = 512

Addresses = Sequence[str]


class NameServer:
    """`ttl`: seconds of each record. `silent`: questions are read and not answered."""

    def __init__(self) -> None:
        self.answers: dict[str, Addresses | Callable[[], Addresses]] = {}
        self.ttl = 60
        self.silent = False
        # (name, type, transport, whether it came with EDNS) of each question.
        self.asked: list[tuple[str, int, str, bool]] = []
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        while True:
            self._udp.bind(("127.0.0.1", 0))
            self.port = self._udp.getsockname()[1]
            try:
                self._tcp.bind(("127.0.0.1", self.port))
            except OSError:  # another program has the port by TCP
                self._udp.close()
                self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            else:
                break
        self._tcp.listen()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._serve_udp, self._serve_tcp)]
        for thread in self._threads:
            thread.start()

    @property
    def place(self) -> str:
        """`ip:port`."""
        return f"127.0.0.1:{self.port}"

    def count(self, name: str, kind: int = A) -> int:
        """Return how often a record was asked for."""
        return sum(1 for one in self.asked if one[:2] == (name, kind))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop answering."""
        for one in (self._udp, self._tcp):
            one.shutdown(socket.SHUT_RDWR) if one is self._tcp else None
            one.close()

    def _serve_udp(self) -> None:
        while True:
            try:
                question, client = self._udp.recvfrom(4096)
            except OSError:  # closed
                return
            answer = self._answer(question, "udp")
            if answer:
                self._udp.sendto(answer, client)

    def _serve_tcp(self) -> None:
        while True:
            try:
                client, _ = self._tcp.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve_stream, args=(client,), daemon=True).start()

    def _serve_stream(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as stream:
            while size := stream.read(2):
                answer = self._answer(stream.read(int.from_bytes(size, "big")), "tcp")
                if answer:
                    client.sendall(len(answer).to_bytes(2, "big") + answer)

    def _answer(self, question: bytes, transport: str) -> bytes:
        number, flags, _, _, _, more = struct.unpack_from("!6H", question)
        at, labels = 12, []
        while question[at]:
            labels.append(question[at + 1 : at + 1 + question[at]].decode())
            at += 1 + question[at]
        kind, _ = struct.unpack_from("!2H", question, at + 1)
        asked = question[12 : at + 5]
        room = struct.unpack_from("!H", question, at + 5 + 3)[0] if more else PLAIN_UDP
        name = ".".join(labels).lower()
        self.asked.append((name, kind, transport, bool(more)))
        if self.silent:
            return b""
        found = self.answers.get(name)
        addresses = found() if callable(found) else found
        version = {A: 4, AAAA: 6}.get(kind)
        records = [one for one in map(ipaddress.ip_address, addresses or ()) if one.version == version]
        answers = b"".join(
            struct.pack("!3HIH", 0xC00C, kind, IN, self.ttl, len(one.packed)) + one.packed for one in records
        )
        authority = b""
        if not records:
            start = b"\2ns\0\5admin\0" + struct.pack("!5I", 1, 3600, 600, 86400, self.ttl)
            authority = b"\0" + struct.pack("!2HIH", SOA, IN, self.ttl, len(start)) + start
        flags = 0x8180 | (flags & 0x0100) | (NXDOMAIN if addresses is None else 0)
        opt = b"\0" + struct.pack("!HHIH", OPT, 4096, 0, 0) if more else b""
        counts = (1, len(records), bool(authority), bool(more))
        whole = struct.pack("!6H", number, flags, *counts) + asked + answers + authority + opt
        if transport == "udp" and len(whole) > room:
            return struct.pack("!6H", number, flags | TRUNCATED, 1, 0, 0, bool(more)) + asked + opt
        return whole
