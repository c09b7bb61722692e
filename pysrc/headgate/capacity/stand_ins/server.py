"""The built-in peers as one server: what a request asks for says which of them answers.

It reads HTTP/1.1 as the gateway and the load generator write it: bodies have their length or are chunked, and
requests of a
connection come one after the other.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
from typing import Any, Final, cast

import uvloop

from headgate.capacity.errors import BenchError
from headgate.capacity.stand_ins import answers
from headgate.capacity.stand_ins.answers import Behaviour, ModelAnswers

_STREAM: Final = re.compile(rb'"stream"\s*:\s*true')
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)", re.IGNORECASE)
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked", re.IGNORECASE)
_CLOSE: Final = re.compile(rb"\r\nconnection:[ \t]*close", re.IGNORECASE)
_FORMATS: Final = {b"/chat/completions": "completions", b"/messages": "messages", b"/responses": "responses"}
# Bytes of a request that is not whole yet.
_MOST: Final = 16 << 20
_TOO_LARGE: Final = answers.whole("text/plain", b"", "413 Content Too Large", "connection: close\r\n")


class Peers:
    """What the server answers."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.page = answers.whole("text/plain", b"x" * behaviour.size)
        self.page_head = self.page[: self.page.index(b"\r\n\r\n") + 4]
        self.models: dict[str, ModelAnswers] = {
            "completions": answers.completions(behaviour.tokens),
            "messages": answers.messages(behaviour.tokens),
            "responses": answers.responses(behaviour.tokens),
        }

    def answer(self, method: bytes, target: bytes, body: bytes) -> bytes | tuple[bytes, ...]:
        """Return the whole answer, or the events of a stream."""
        path = target.partition(b"?")[0]
        if path.startswith(b"/mcp"):
            return answers.rpc_answer(method, body)
        for end, form in _FORMATS.items():
            if path.endswith(end) and method == b"POST":
                found = self.models[form]
                return found.events if _STREAM.search(body) else found.whole
        return self.page_head if method == b"HEAD" else self.page


class PeerConnection(asyncio.Protocol):
    """One connection."""

    def __init__(self, peers: Peers, loop: asyncio.AbstractEventLoop) -> None:
        self.peers, self.loop = peers, loop
        self.data = b""
        self.busy = False
        self.last = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no asyncio.Transport to isinstance().
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.data += data
        if not self.busy:
            self.next()

    def next(self) -> None:
        """Answer what has come, request by request."""
        while not self.busy and not self.last and (end := self.data.find(b"\r\n\r\n")) >= 0:
            head = self.data[: end + 2]
            found = self._body(head, end + 4)
            if found is None:
                break
            body, stop = found
            self.data = self.data[stop:]
            self.last = _CLOSE.search(head) is not None
            method, target, _ = (*head.split(b" ", 2), b"", b"")[:3]
            self._begin(self.peers.answer(method, target, body))
        if len(self.data) > _MOST:
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def _body(self, head: bytes, start: int) -> tuple[bytes, int] | None:
        """Return the body that follows a head, and where it ends; None: it has not come yet."""
        if _CHUNKED.search(head):
            return self._chunks(start)
        found = _LENGTH.search(head)
        stop = start + (int(found[1]) if found else 0)
        return (self.data[start:stop], stop) if len(self.data) >= stop else None

    def _chunks(self, at: int) -> tuple[bytes, int] | None:
        parts: list[bytes] = []
        while (end := self.data.find(b"\r\n", at)) >= 0:
            try:
                size = int(self.data[at:end].partition(b";")[0], 16)
            except ValueError:
                self.transport.close()
                return None
            if size == 0:
                stop = self.data.find(b"\r\n", end + 2)
                return None if stop < 0 else (b"".join(parts), stop + 2)
            parts.append(self.data[end + 2 : end + 2 + size])
            at = end + 4 + size
        return None

    def _begin(self, answer: bytes | tuple[bytes, ...]) -> None:
        delay = self.peers.behaviour.delay
        if delay:
            self.busy = True
            self.loop.call_later(delay, self._write, answer)
        else:
            self._write(answer)

    def _write(self, answer: bytes | tuple[bytes, ...]) -> None:
        if self.transport.is_closing():
            return
        if isinstance(answer, bytes):
            self.transport.write(answer)
            self._over()
            return
        self.busy = True
        self.transport.write(answers.STREAM_HEAD)
        self._event(answer, 0)

    def _event(self, events: tuple[bytes, ...], at: int) -> None:
        """Write an event, and come back for the next one."""
        if self.transport.is_closing():
            return
        if at == len(events):
            self.transport.write(answers.LAST_CHUNK)
            self._over()
            return
        self.transport.write(events[at])
        if self.peers.behaviour.gap:
            self.loop.call_later(self.peers.behaviour.gap, self._event, events, at + 1)
        else:
            self.loop.call_soon(self._event, events, at + 1)

    def _over(self) -> None:
        was_busy, self.busy = self.busy, False
        if self.last:
            self.transport.close()
        elif was_busy:
            self.next()


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises BenchError."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(4096)
    except OSError as error:
        raise BenchError(f"cannot listen at {host}:{port}: {error.strerror or error}") from None
    return found


def serve(listener: socket.socket, behaviour: Behaviour, processes: int = 1, owner_pipe: int | None = None) -> None:
    """Serve until SIGTERM or SIGINT, with several processes at one socket.

    owner_pipe: a pipe whose other end is closed when whoever needs the server is gone.
    """
    children: list[int] = []
    for _ in range(processes - 1):
        child = os.fork()
        if child == 0:
            children.clear()
            break
        children.append(child)
    try:
        uvloop.run(_serve(listener, Peers(behaviour), owner_pipe))
    finally:
        for child in children:
            os.kill(child, signal.SIGTERM)
            os.waitpid(child, 0)


async def _serve(listener: socket.socket, peers: Peers, owner_pipe: int | None) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    if owner_pipe is not None:
        loop.add_reader(owner_pipe, over.set)

    def connection() -> Any:
        return PeerConnection(peers, loop)

    async with await loop.create_server(connection, sock=listener, backlog=4096):
        await over.wait()
