"""The workers as the supervisor sees them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable

from headgate.ir.gateway import Gateway
from headgate.net.sockets import LentSocket
from headgate.server import control
from headgate.server.child import ChildProcess
from headgate.server.control import (
    Commit,
    Discard,
    Done,
    Gather,
    Hello,
    Identify,
    Permit,
    Prepare,
    Query,
    QueryResult,
    SampleHeap,
    SendMetrics,
    SetLevels,
    WantLeases,
    WatchCommand,
)
from headgate.server.template_handle import TemplateHandle
from headgate_engine.tls.tickets import TicketKeys

logger = logging.getLogger("headgate.supervisor")

TICKET_SECRET_BYTES = 32
SESSION_KEY_BYTES = 32

PREPARE_SECONDS = 60.0
ASK_SECONDS = 2.0
# The first expression loads the compiler.
WATCH_SECONDS = 10.0
# A worker that dies within this time of its start is restarted with growing delay.
EARLY_SECONDS = 5.0
FIRST_DELAY = 0.1
LAST_DELAY = 5.0
# A worker whose channel has closed ends within this time, unless it hangs.
END_SECONDS = 0.2


def session_key(gateway: Gateway, inherited: bytes = b"") -> bytes:
    """Return the configured key for session ids, that of a predecessor, or a random one, with which sessions end with
    the process.
    """
    configured = gateway.process.session_key
    if configured is None:
        return inherited or secrets.token_bytes(SESSION_KEY_BYTES)
    return bytes.fromhex(configured.secret.reveal().strip())


class WorkerSecrets:
    """What all workers have in common for the life of the process, and nobody else has.

    `session_key`: 32 bytes that seal session ids. `tickets`: what tickets() of a predecessor has returned.
    """

    def __init__(self, session_key: bytes, tickets: tuple[int, bytes] | None = None) -> None:
        self.session_key = session_key
        number, secret = tickets or (TicketKeys.number_now(), secrets.token_bytes(TICKET_SECRET_BYTES))
        self._tickets = TicketKeys(secret, number)

    def tickets(self) -> tuple[int, bytes]:
        """Return what keys of TLS session tickets are made from, as it is now."""
        return self._tickets.given()


class WorkerHandle:
    """One worker slot: its process and its channel. `sockets` are those of all workers, by the keys of their ports.
    `inherited`: the digest of the configuration that the process was forked with, until it receives another one.
    """

    def __init__(
        self,
        index: int,
        template: TemplateHandle,
        sockets: dict[str, socket.socket],
        on_death: Callable[[WorkerHandle], None],
    ) -> None:
        self.index = index
        self.sockets = sockets
        self.given: set[str] = set()
        self.process: ChildProcess | None = None
        self.ready = False
        # It has not got the configuration that the others run.
        self.stale = False
        self.inherited = ""
        self.started = 0.0
        self.delay = FIRST_DELAY
        # Who asks for leases that its requests want.
        self.on_wants: Callable[[WorkerHandle, WantLeases], None] | None = None
        self._template = template
        self._on_death = on_death
        self._channel: socket.socket | None = None
        self._waiting: dict[tuple[str, int], asyncio.Future[control.Message]] = {}
        self._asked = 0

    async def start(self, form: str, levels: str) -> None:
        """Start the process and begin to read its channel. Raises OSError."""
        ours, theirs = control.channel_pair()
        try:
            self.process = await self._template.start_worker(self.index, form, levels, theirs.fileno())
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self._channel = ours
        self.given = set()
        self.ready = self.stale = False
        self.started = time.monotonic()
        asyncio.get_running_loop().add_reader(ours.fileno(), self._on_packet)

    def ended(self) -> int | None:
        """Return the exit status (negative: the signal that killed the process), None if the process still runs. The
        channel closes shortly before the exit status is available.
        """
        return None if self.process is None else self.process.wait(END_SECONDS)

    def _on_packet(self) -> None:
        assert self._channel is not None
        while True:
            try:
                packet = control.receive(self._channel)
            except BlockingIOError:
                return
            except OSError:
                packet = None
            if packet is None:
                self._hang_up()
                return
            self._on_message(packet[0])

    def _on_message(self, message: control.Message) -> None:
        match message:
            case Hello():
                self.ready = True
                self.inherited = message.configuration
                self._resolve(("hello", 0), message)
            case Done():
                self._resolve((message.what, message.generation), message)
            case QueryResult():
                self._resolve(("told", message.number), message)
            case WantLeases():
                if self.on_wants is not None:
                    self.on_wants(self, message)
            case _:
                logger.error("unexpected message of a worker", extra={"type": type(message).__name__})

    def _resolve(self, key: tuple[str, int], message: control.Message) -> None:
        waiting = self._waiting.pop(key, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    def _hang_up(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            asyncio.get_running_loop().remove_reader(channel.fileno())
            channel.close()
        self.ready = False
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError(f"worker {self.index} died"))
        self._waiting.clear()
        self._on_death(self)

    def send(self, message: control.Message, descriptors: list[int] | None = None) -> None:
        """Send a message. Errors are ignored: the end of a worker is noticed elsewhere."""
        if self._channel is not None:
            with contextlib.suppress(OSError):
                control.send(self._channel, message, descriptors)

    async def _answer(self, key: tuple[str, int], seconds: float) -> control.Message:
        if self._channel is None:
            raise ConnectionError(f"worker {self.index} is not running")
        waiting: asyncio.Future[control.Message] = asyncio.get_running_loop().create_future()
        self._waiting[key] = waiting
        try:
            return await asyncio.wait_for(waiting, seconds)
        finally:
            self._waiting.pop(key, None)

    async def wait_ready(self) -> None:
        """Return once the process has said hello; raises ConnectionError or TimeoutError."""
        if not self.ready:
            await self._answer(("hello", 0), PREPARE_SECONDS)

    async def prepare(
        self,
        generation: int,
        config_fd: int,
        shared: WorkerSecrets,
        modules: tuple[str, ...],
    ) -> tuple[str, ...]:
        """Have the worker compile a configuration; return its errors."""
        self.inherited = ""
        new = [key for key in self.sockets if key not in self.given]
        descriptors = [config_fd, *(self.sockets[key].fileno() for key in new)]
        lent = tuple(key for key in new if isinstance(self.sockets[key], LentSocket))
        self.send(Prepare(generation, tuple(new), shared.session_key, shared.tickets(), modules, lent), descriptors)
        answer = await self._answer(("prepare", generation), PREPARE_SECONDS)
        assert isinstance(answer, Done)
        if not answer.errors:
            self.given.update(new)
        return answer.errors

    async def commit(self, generation: int) -> None:
        """Have the worker swap the prepared configuration in."""
        self.send(Commit(generation))
        await self._answer(("commit", generation), PREPARE_SECONDS)

    def discard(self, generation: int) -> None:
        """Have the worker forget the prepared configuration."""
        self.send(Discard(generation))
        self.given &= set(self.sockets)

    async def watch(self, message: WatchCommand, descriptor: int) -> tuple[str, ...]:
        """Have the worker trace a request into a pipe. Return the error of the expression, if any. Raises
        ConnectionError."""
        self.send(message, [descriptor])
        answer = await self._answer(("watch", message.number), WATCH_SECONDS)
        assert isinstance(answer, Done)
        return answer.errors

    async def numbers(self, what: str = "numbers") -> dict[str, object]:
        """Return the numbers that the worker reports. Returns an empty dict if the worker does not answer in time."""
        try:
            return await self.ask(what, ASK_SECONDS)
        except (ConnectionError, TimeoutError):
            return {}

    async def set_levels(self, directives: str, form: str) -> None:
        """Have the worker use these log directives. A worker that is not ready applies them when it starts."""
        self._asked += 1
        self.send(SetLevels(self._asked, directives, form))
        if not self.ready:
            return
        with contextlib.suppress(ConnectionError, TimeoutError):
            await self._answer(("levels", self._asked), ASK_SECONDS)

    async def ask(self, what: str, seconds: float, descriptor: int | None = None) -> dict[str, object]:
        """Return the answer to a query (server/reports.py). Raises ConnectionError or TimeoutError."""
        self._asked += 1
        number = self._asked
        self.send(Query(number, what), None if descriptor is None else [descriptor])
        answer = await self._answer(("told", number), seconds)
        assert isinstance(answer, QueryResult)
        return answer.values

    async def permit(self, pid: int) -> None:
        """Have the worker allow process `pid` to trace it. Ignores a worker that does not answer in time."""
        self._asked += 1
        await self._order(Permit(self._asked, pid), self._asked)

    async def sample_heap(self, rate: int) -> None:
        """Have the worker sample its allocations. `rate`: bytes between two samples; 0 stops sampling."""
        self._asked += 1
        await self._order(SampleHeap(self._asked, rate), self._asked)

    async def gather(self, descriptor: int) -> None:
        """Have the worker write records of requests into a pipe."""
        self._asked += 1
        await self._order(Gather(self._asked), self._asked, descriptor)

    async def identify(self, descriptor: int) -> None:
        """Have the worker use the X.509-SVID in a memory file."""
        self._asked += 1
        await self._order(Identify(self._asked), self._asked, descriptor)

    async def send_metrics(self, descriptor: int) -> None:
        """Have the worker send the metrics in a memory file to their collector."""
        self._asked += 1
        await self._order(SendMetrics(self._asked), self._asked, descriptor)

    async def _order(self, message: control.Message, number: int, descriptor: int | None = None) -> None:
        self.send(message, None if descriptor is None else [descriptor])
        if self.ready:
            with contextlib.suppress(ConnectionError, TimeoutError):
                await self._answer(("told", number), ASK_SECONDS)

    async def ask_long(self, what: str, seconds: float) -> bytes:
        """Return a report that may be longer than a packet."""
        descriptor = os.memfd_create("headgate-answer", os.MFD_CLOEXEC)
        try:
            await self.ask(what, seconds, descriptor)
            return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        finally:
            os.close(descriptor)

    def restart_delay(self) -> float:
        """Return the delay before the next start in seconds. It grows while the process dies soon after its start."""
        if time.monotonic() - self.started > EARLY_SECONDS:
            self.delay = FIRST_DELAY
        delay, self.delay = self.delay, min(self.delay * 2, LAST_DELAY)
        return delay

    def alive(self) -> bool:
        """Tell whether the process runs; reaps it when it has ended."""
        return self.process is not None and self.process.poll() is None

    @property
    def linked(self) -> bool:
        """Tell whether the channel to the process is open."""
        return self._channel is not None

    async def tasks(self, seconds: float) -> list[str]:
        """Return the live tasks of the worker; one entry that says so if it does not answer."""
        try:
            found: list[str] = json.loads(await self.ask_long("tasks", seconds))
        except (ConnectionError, TimeoutError):
            return ["failed to dump workload tasks"]
        return found

    def send_kill(self) -> None:
        """Have the kernel end the process, and wait for nothing."""
        if self.process is not None:
            self.process.send_kill()

    def kill(self) -> None:
        """End the process at once."""
        if self.process is not None:
            self.process.kill()
