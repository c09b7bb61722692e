"""Clients of every kind and backends that are slow, die or leave, for runs that may last: asyncio, in the process of the test."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, ResponseReceived, StreamEnded, StreamReset
from hyperframe.frame import GoAwayFrame

KINDS = ("http/1.1", "http/2", "tls", "tls http/2", "tcp")
PATIENCE = 60.0
PIECE = bytes(range(256)) * 16


def body_of(size: int) -> bytes:
    return (PIECE * (size // len(PIECE) + 1))[:size]


def rounds(short: int) -> Iterator[int]:
    """Numbers: so many, or, where HEADGATE_SOAK says how many seconds a part lasts, until they have passed."""
    seconds, end, number = float(os.environ.get("HEADGATE_SOAK", "0")), 0.0, 0
    end = time.monotonic() + seconds
    while number < short or time.monotonic() < end:
        yield number
        number += 1


class Broken(Exception):
    """The answer ended too early, or the connection did before it."""


class Plain:
    """A client of HTTP/1.1."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, path: str, body: bytes = b"", piece: int = 0) -> tuple[int, bytes]:
        """Status and content. `piece`: bytes of each write and each read, with a pause behind it."""
        method = "POST" if body else "GET"
        try:
            await self._send(f"{method} {path} HTTP/1.1\r\nhost: a.test\r\ncontent-length: {len(body)}\r\n\r\n".encode(), 0)
            await self._send(body, piece)
            head = await self.reader.readuntil(b"\r\n\r\n")
            size = int(re.search(rb"content-length: (\d+)", head.lower())[1])  # type: ignore[index]
            found = b""
            while len(found) < size:
                more = await self.reader.read(min(piece or 65536, size - len(found)))
                if not more:
                    raise Broken(f"{len(found)} of {size} bytes")
                found += more
                if piece:
                    await asyncio.sleep(0.0005)
            return int(head.split()[1]), found
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Broken(repr(error)) from error

    async def _send(self, data: bytes, piece: int) -> None:
        for at in range(0, len(data), piece or len(data) or 1):
            self.writer.write(data[at : at + (piece or len(data))])
            await self.writer.drain()
            if piece:
                await asyncio.sleep(0.0005)

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await self.writer.wait_closed()


class Multiplexed(Plain):
    """A client of HTTP/2 that asks one thing at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(reader, writer)
        self.h2 = H2Connection(H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        writer.write(self.h2.data_to_send())

    async def ask(self, path: str, body: bytes = b"", piece: int = 0) -> tuple[int, bytes]:
        number = self.h2.get_next_available_stream_id()
        head = [(":method", "POST" if body else "GET"), (":scheme", "http"), (":authority", "a.test"), (":path", path)]
        self.h2.send_headers(number, head, end_stream=not body)
        status, found, at, over = 0, b"", 0, False
        try:
            while not over:
                room = min(self.h2.local_flow_control_window(number), 16384, piece or 16384) if at < len(body) else 0
                if room:
                    self.h2.send_data(number, body[at : at + room], end_stream=at + room >= len(body))
                    at += room
                await self._send(self.h2.data_to_send(), 0)
                if room:
                    await asyncio.sleep(0.0005 if piece else 0)
                    continue
                data = await self.reader.read(piece or 65536)
                if not data:
                    raise Broken(f"the end, at {len(found)} bytes")
                for event in self.h2.receive_data(data):
                    if isinstance(event, ResponseReceived):
                        status = int(dict(event.headers)[":status"])
                    elif isinstance(event, DataReceived):
                        found += event.data
                        self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    elif isinstance(event, StreamReset) and event.stream_id == number:
                        raise Broken(f"reset {event.error_code}")
                    over |= isinstance(event, StreamEnded) and event.stream_id == number
                if piece:
                    await asyncio.sleep(0.0005)
            await self._send(self.h2.data_to_send(), 0)
        except ConnectionError as error:
            raise Broken(repr(error)) from error
        return status, found


async def opened(kind: str, ports: dict[str, int], context: ssl.SSLContext | None, receive_buffer: int = 0) -> Plain:
    """A connection of one of KINDS."""
    sock = socket.socket()
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", ports[kind.split()[0]]))
    more: dict[str, Any] = {}
    if kind.startswith("tls"):
        assert context is not None
        more = {"ssl": context, "server_hostname": "a.test"}
    streams = await asyncio.open_connection(sock=sock, limit=receive_buffer or 65536, **more)
    return (Multiplexed if kind.endswith("/2") else Plain)(*streams)


class SlowBackend:
    """HTTP/1.1. Answers with a digest of what it got and `n` bytes. `/slow` reads and writes in small pieces, `/die` ends in the middle."""

    async def start(self) -> int:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=4096, limit=65536)
        return int(self.server.sockets[0].getsockname()[1])

    def close(self) -> None:
        self.server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                target = head.split(b" ")[1].decode()
                slow = target.startswith("/slow")
                found = re.search(rb"content-length: (\d+)", head.lower())
                left, digest = int(found[1]) if found else 0, hashlib.sha256()
                if b"transfer-encoding" in head.lower():
                    left = -1
                while left:
                    if left < 0:
                        size = int(await reader.readline(), 16)
                        data = (await reader.readexactly(size + 2))[:-2]
                        if size == 0:
                            break
                    else:
                        data = await reader.read(min(left, 4096 if slow else 65536))
                        if not data:
                            return
                        left -= len(data)
                    digest.update(data)
                    if slow:
                        await asyncio.sleep(0.0005)
                size = int(re.search(r"n=(\d+)", target)[1]) if "n=" in target else 0  # type: ignore[index]
                content = digest.hexdigest().encode() + body_of(size)
                writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(content)}\r\n\r\n".encode())
                if target.startswith("/die"):
                    writer.write(content[: len(content) // 2])
                    await writer.drain()
                    writer.transport.abort()
                    return
                piece = 4096 if slow else len(content)
                for at in range(0, len(content), piece):
                    writer.write(content[at : at + piece])
                    await writer.drain()
                    if slow:
                        await asyncio.sleep(0.0005)
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            pass
        finally:
            writer.close()


class LeavingBackend(asyncio.Protocol):
    """HTTP/2. Each connection takes `most` calls, says so with GOAWAY, answers those it took and leaves."""

    most = 5
    connections = 0
    answered = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.taken: list[int] = []
        self.left: set[int] = set()
        LeavingBackend.connections += 1
        self._flush()

    def _flush(self) -> None:
        self.transport.write(self.h2.data_to_send())

    def data_received(self, data: bytes) -> None:
        for event in self.h2.receive_data(data):
            if isinstance(event, RequestReceived) and len(self.taken) < self.most:
                self.taken.append(event.stream_id)
                self.left.add(event.stream_id)
                if len(self.taken) == self.most:
                    self._flush()
                    self.transport.write(GoAwayFrame(0, last_stream_id=event.stream_id, error_code=0).serialize())
                asyncio.get_running_loop().call_later(0.001, self._answer, event.stream_id)
        self._flush()

    def _answer(self, number: int) -> None:
        if self.transport.is_closing():
            return
        self.h2.send_headers(number, [(":status", "200"), ("content-length", "4")])
        self.h2.send_data(number, b"here", end_stream=True)
        self._flush()
        LeavingBackend.answered += 1
        self.left.discard(number)
        if len(self.taken) == self.most and not self.left:
            self.transport.close()


class Footprint:
    """Descriptors and private memory of processes."""

    def __init__(self, pids: list[int]) -> None:
        self.pids = pids

    def descriptors(self) -> int:
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.pids)

    def memory(self) -> int:
        """Bytes."""
        lines = [line for pid in self.pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))

    async def wait_descriptors(self, most: int) -> None:
        """Until there are no more than so many: closed connections are noticed in their turn."""
        end = time.monotonic() + PATIENCE
        while self.descriptors() > most:
            assert time.monotonic() < end, f"{self.descriptors()} descriptors, expected {most}"
            await asyncio.sleep(0.05)
