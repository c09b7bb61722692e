"""A worker in this process between raw clients and a scripted upstream, for tests of the engine's connections.

`on_rig()` turns `async def test(rig)` into a test: it runs on uvloop, and afterwards nothing may be left behind: no
connection, no waiting call, no logged error, no exception in the loop or in an upstream script.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import logging
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from headgate.pipeline.replies import engine_replies
from headgate_engine.http1.receiver import ReceiverLimits
from headgate_engine.link.backend import HOST
from headgate_engine.link.pool import Pool
from headgate_engine.link.protocols import connection_factory
from headgate_engine.link.upstream import Http1Upstream
from headgate_engine.link.worker import Worker
from headgate_engine.plan.plans import BackendPlan, BindPlan, ListenerPlan, RoutePlan
from headgate_engine.route.table import RouteRule, RouteTable

Fields = list[tuple[str, str]]
Script = Callable[["Upstream"], Awaitable[None]]

MS = 1_000_000
PATIENCE = 60.0
GET = b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n"


class Message(NamedTuple):
    """A parsed request or response; `start` is its first line, `interim` the status codes of 1xx before it."""

    start: str
    fields: Fields
    body: bytes
    trailers: Fields
    raw_head: bytes
    interim: list[tuple[int, Fields]]

    @property
    def status(self) -> int:
        return int(self.start.split(" ")[1])

    @property
    def target(self) -> str:
        return self.start.split(" ")[1]

    def get(self, name: str) -> str | None:
        return next((value for key, value in self.fields if key.lower() == name.lower()), None)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.fields if key.lower() == name.lower()]


class Truncated(Exception):
    """The peer ended the connection inside a message; `data` is what had come of it."""

    def __init__(self, data: bytes) -> None:
        super().__init__(repr(data[:200]))
        self.data = data


class Ended(Truncated):
    """The peer ended the connection between messages."""


class Intake:
    """Reads messages from `more()`, which gives bytes and b"" at the end."""

    def __init__(self, more: Callable[[], Awaitable[bytes]]) -> None:
        self.more = more
        self.data = b""

    async def until(self, mark: bytes) -> bytes:
        while mark not in self.data:
            piece = await self.more()
            if not piece:
                raise (Truncated if self.data else Ended)(self.data)
            self.data += piece
        taken, _, self.data = self.data.partition(mark)
        return taken + mark

    async def exactly(self, n: int) -> bytes:
        parts = [self.data]
        have = len(self.data)
        while have < n:
            piece = await self.more()
            if not piece:
                self.data = b"".join(parts)
                raise Truncated(self.data)
            parts.append(piece)
            have += len(piece)
        whole = b"".join(parts)
        self.data = whole[n:]
        return whole[:n]

    async def rest(self) -> bytes:
        parts = [self.data]
        self.data = b""
        while piece := await self.more():
            parts.append(piece)
        return b"".join(parts)

    async def chunked(self) -> tuple[bytes, Fields]:
        parts: list[bytes] = []
        while True:
            size = int((await self.until(b"\r\n")).split(b";")[0], 16)
            if size == 0:
                break
            parts.append((await self.exactly(size + 2))[:-2])
        trailers: Fields = []
        while (line := await self.until(b"\r\n")) != b"\r\n":
            trailers.append(pair(line.decode("latin-1")))
        return b"".join(parts), trailers

    async def message(self, *, bodiless: bool = False) -> Message:
        """A message with its framing resolved; `bodiless`: the answer to a HEAD."""
        interim: list[tuple[int, Fields]] = []
        while True:
            raw = await self.until(b"\r\n\r\n")
            start, *lines = raw.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
            fields = [pair(line) for line in lines]
            if start.startswith("HTTP/1.1 1") and not start.startswith("HTTP/1.1 101"):
                interim.append((int(start.split(" ")[1]), fields))
                continue
            break
        known = {key.lower(): value for key, value in fields}
        response = start.startswith("HTTP/")
        status = int(start.split(" ")[1]) if response else 0
        body: bytes = b""
        trailers: Fields = []
        if bodiless or status in (101, 204, 304):
            pass
        elif known.get("transfer-encoding") == "chunked":
            body, trailers = await self.chunked()
        elif "content-length" in known:
            body = await self.exactly(int(known["content-length"]))
        elif response:
            body = await self.rest()
        return Message(start, fields, body, trailers, raw, interim)


def pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name, value.strip()


class Client:
    """A raw client socket. It reads only when asked to."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.intake = Intake(self._more)

    async def _more(self) -> bytes:
        loop = asyncio.get_running_loop()
        return await asyncio.wait_for(loop.sock_recv(self.sock, 65536), PATIENCE)

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.sock, data)

    async def answer(self, *, head: bool = False) -> Message:
        return await self.intake.message(bodiless=head)

    async def ask(self, data: bytes) -> Message:
        await self.send(data)
        return await self.answer(head=data.startswith(b"HEAD "))

    async def ended(self) -> bytes:
        """What still comes until the gateway ends the connection; ConnectionResetError when it is broken."""
        return await self.intake.rest()

    def eof(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.sock.close()

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class Upstream:
    """One connection that the gateway opened to the scripted server. `number` counts from 1."""

    def __init__(self, rig: Rig, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.rig = rig
        self.reader = reader
        self.writer = writer
        self.number = number
        self.intake = Intake(functools.partial(reader.read, 65536))

    async def request(self) -> Message:
        message = await self.intake.message()
        self.rig.seen.append(message)
        return message

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def reply(self, body: bytes = b"ok", status: int = 200, fields: str = "") -> None:
        await self.send(b"HTTP/1.1 %d X\r\n%scontent-length: %d\r\n\r\n%s" % (status, fields.encode(), len(body), body))

    async def closed(self) -> bytes:
        """Waits until the gateway ends the connection; gives what it sent before."""
        try:
            return await asyncio.wait_for(self.intake.rest(), PATIENCE)
        except ConnectionError:
            return b""

    def reset(self) -> None:
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


async def echo(up: Upstream) -> None:
    """Answers every request with its target, a space and its body."""
    while True:
        request = await up.request()
        await up.reply(request.target.encode() + b" " + request.body)


class Rig:
    """Worker, one bind, one route, one backend; change the plans before the first request."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.tasks: set[asyncio.Task[None]] = set()
        self.faults: list[str] = []
        self.seen: list[Message] = []
        self.script: Script = echo
        self.accepted = 0
        self.clients: list[Client] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.servers: list[asyncio.base_events.Server] = []
        self.loop.set_exception_handler(lambda loop, context: self.faults.append(repr(context)))
        self.worker = Worker(self.loop, None, 0, -1, self.spawn)
        self.worker.set_replies(engine_replies())
        self.upstream_port = 0
        self.port = 0
        self.pool = Pool(self.worker, "b", b"backend:80", self.connect_upstream, Http1Upstream(self.worker))
        self.backend = BackendPlan("b", "http", HOST)
        self.backend.pool = self.pool
        self.route = RoutePlan("r", "default", "", (self.backend,), (1,))
        self.bind = BindPlan("bind/1", ReceiverLimits())
        self.listener = ListenerPlan("l", "gw", "default", RouteTable([RouteRule(target=self.route)]))
        self.bind.sole_listener = self.listener
        self.worker.set_bind("bind/1", self.bind)

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self.loop.create_task(coroutine, name=name)
        self.tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.faults.append(f"task {task.get_name()}: {task.exception()!r}")

    async def connect_upstream(self, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        await self.loop.create_connection(factory, "127.0.0.1", self.upstream_port)

    async def start(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        front = await self.loop.create_server(connection_factory(self.worker, "bind/1"), "127.0.0.1", 0)
        self.upstream_port = server.sockets[0].getsockname()[1]
        self.port = front.sockets[0].getsockname()[1]
        self.servers += [server, front]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self.writers.append(writer)
        up = Upstream(self, reader, writer, self.accepted)
        try:
            await self.script(up)
        except (Truncated, ConnectionError, asyncio.CancelledError):
            pass
        except Exception as error:
            self.faults.append(f"script: {error!r}")
        finally:
            writer.close()
            self.writers.remove(writer)

    async def client(self, *, receive_buffer: int = 0) -> Client:
        sock = socket.socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await self.loop.sock_connect(sock, ("127.0.0.1", self.port))
        client = Client(sock)
        self.clients.append(client)
        return client

    async def ask(self, data: bytes) -> Message:
        """One request on a connection of its own."""
        client = await self.client()
        try:
            return await client.ask(data)
        finally:
            client.close()

    async def wait(self, condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"never: {what}")
            await asyncio.sleep(0.005)

    def at_rest(self) -> bool:
        """Every upstream connection is idle or closed, nobody waits for one."""
        pool = self.pool
        return pool.connecting == 0 and pool.waiting_count == 0 and pool.open == pool.idle_count

    async def finish(self) -> None:
        """Ends the clients and checks that nothing of them is left."""
        for client in self.clients:
            client.close()
        await self.wait(lambda: self.worker.connection_count() == 0, f"no client left: {self.worker.stats()}")
        await self.wait(self.at_rest, "upstream connections at rest")
        await self.wait(lambda: not self.tasks, "tasks over")
        self.pool.close()
        await self.wait(lambda: self.pool.open == 0, "upstream connections closed")
        for server in self.servers:
            server.close()
        await self.wait(lambda: not self.writers, "scripts over")
        await self.worker.aclose()
        assert not self.faults, self.faults


def on_rig(*, faults: int = 0, **plan: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Decorates `async def test(rig, ...)`. `plan`: fields of the BindPlan, times in ns. `faults`: errors in the log."""

    def wrap(function: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        async def scenario(params: dict[str, Any]) -> None:
            rig = Rig()
            for name, value in plan.items():
                setattr(rig.bind, name, value)
            await rig.start()
            try:
                await function(rig, **params)
            except BaseException:
                for client in rig.clients:
                    client.close()
                raise
            await rig.finish()

        def test(caplog: Any, **params: Any) -> None:
            caplog.set_level(logging.WARNING)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(scenario(params))
            errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
            assert len(errors) == faults, caplog.text

        signature = inspect.signature(function)
        others = [parameter for name, parameter in signature.parameters.items() if name != "rig"]
        caplog = inspect.Parameter("caplog", inspect.Parameter.KEYWORD_ONLY)
        others = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in others]
        test.__name__, test.__doc__, test.__module__ = function.__name__, function.__doc__, function.__module__
        test.__signature__ = inspect.Signature([*others, caplog])  # type: ignore[attr-defined]
        return test

    return wrap


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
