"""A server as a child process: JSON-RPC messages, one a line, on its standard input and output.

Ids of requests are replaced by numbers of our own on the way in and put back on the way out, so that two clients, or
one that repeats itself, cannot meet under one id.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
from collections import deque
from collections.abc import Callable

from headgate.backend.mcp.failure import TargetFailure
from headgate.dialect.mcp.jsonrpc import (
    INTERNAL_ERROR,
    Kind,
    Message,
    NotAMessage,
    error_message,
    parse,
    progress_token,
)
from headgate.ir.mcp import StdioTarget
from headgate.net.tasks import spawn

logger = logging.getLogger("headgate.mcp.stdio")

MAX_MESSAGE = 16 * 1024 * 1024
MAX_LOG_LINE = 4096
QUEUE = 64
STOP_SECONDS = 3.0
PR_SET_PDEATHSIG = 1


class Inbox:
    """Messages for one reader, at most QUEUE of them waiting; the oldest are dropped for a reader that is too slow."""

    def __init__(self) -> None:
        self._messages: deque[bytes | None] = deque()
        self._arrived = asyncio.Event()

    def put(self, message: bytes | None) -> None:
        """Add a message; None is the end."""
        if len(self._messages) >= QUEUE and message is not None:
            self._messages.popleft()
            logger.warning("a slow reader lost a message")
        self._messages.append(message)
        self._arrived.set()

    async def get(self) -> bytes | None:
        """Return the next message, None at the end."""
        while not self._messages:
            self._arrived.clear()
            await self._arrived.wait()
        return self._messages.popleft()


class Exchange:
    """A request under way: its answer and what belongs to it arrive in `inbox`."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.inbox = Inbox()
        self.token = progress_token(message)
        self.answered = False


class StdioServer:
    """One running process. `on_exit` is called once when it has ended."""

    def __init__(self, target: StdioTarget, on_exit: Callable[[], None]) -> None:
        self._target = target
        self._on_exit = on_exit
        self._process: asyncio.subprocess.Process | None = None
        self._pending: dict[int, Exchange] = {}
        self._next_id = 0
        self._dead = False
        self._stopping = False
        self.events: Inbox | None = None

    @property
    def dead(self) -> bool:
        """Whether it takes no more messages."""
        return self._dead

    async def start(self) -> None:
        """Start the process; raises TargetFailure."""
        target = self._target
        environment = {} if target.clear_env else dict(os.environ)
        environment |= {name: secret.reveal() for name, secret in target.env}
        try:
            self._process = await asyncio.create_subprocess_exec(
                target.cmd,
                *target.args,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
                start_new_session=True,
                preexec_fn=_die_with_worker,
                limit=MAX_MESSAGE,
            )
        except OSError as error:
            self._dead = True
            raise TargetFailure(f"cannot start {target.cmd}: {error.strerror or error}") from error
        spawn(f"mcp stdio {target.name}", self._read())
        spawn(f"mcp stderr {target.name}", self._read_errors())

    async def send(self, message: Message) -> Exchange | None:
        """Pass a message on; a request gives the exchange to read its answer from. Raises TargetFailure."""
        if message.kind is not Kind.REQUEST:
            await self._write(message.text)
            return None
        self._next_id += 1
        number = self._next_id
        exchange = Exchange(message)
        self._pending[number] = exchange
        try:
            await self._write(message.with_id(str(number).encode()))
        except TargetFailure:
            del self._pending[number]
            raise
        return exchange

    async def give_up(self, exchange: Exchange) -> None:
        """The client no longer waits: tell the server."""
        for number, known in list(self._pending.items()):
            if known is exchange:
                del self._pending[number]
                note = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}' % number
                with contextlib.suppress(TargetFailure):
                    await self._write(note)

    async def _write(self, text: bytes) -> None:
        if self._dead or self._process is None or self._process.stdin is None:
            raise TargetFailure("the server is not running")
        # A line break inside the message would end it; outside strings it means nothing in JSON.
        self._process.stdin.write(text.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n")
        try:
            await self._process.stdin.drain()
        except OSError as error:
            raise TargetFailure("the server closed its input") from error

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            while True:
                line = await self._process.stdout.readline()
                if not line:
                    break
                if line.strip():
                    self._on_line(line.strip())
        except ValueError:
            logger.error("message is too long", extra={"target": self._target.name, "limit": MAX_MESSAGE})
        finally:
            self._end()
            await self.stop()

    def _on_line(self, line: bytes) -> None:
        try:
            message = parse(line)
        except NotAMessage as error:
            logger.warning("not a message", extra={"target": self._target.name, "error": str(error)})
            return
        if message.kind is Kind.RESPONSE:
            self._on_response(message)
            return
        exchange = self._owner(message)
        if exchange is not None:
            exchange.inbox.put(line)
        elif self.events is not None:
            self.events.put(line)

    def _on_response(self, message: Message) -> None:
        try:
            number = int(message.raw_id or b"")
        except ValueError:
            number = 0
        exchange = self._pending.pop(number, None)
        if exchange is None or exchange.message.raw_id is None:
            return
        exchange.answered = True
        exchange.inbox.put(message.with_id(exchange.message.raw_id))
        exchange.inbox.put(None)

    def _owner(self, message: Message) -> Exchange | None:
        """Return the request a notification or server request belongs to: by its token, or the only one there is."""
        token = progress_token(message) if message.method == "notifications/progress" else None
        if token is not None:
            for exchange in self._pending.values():
                if exchange.token == token:
                    return exchange
            return None
        if len(self._pending) == 1:
            return next(iter(self._pending.values()))
        return None

    async def _read_errors(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        while True:
            try:
                line = await self._process.stderr.readline()
            except ValueError:
                continue
            if not line:
                return
            text = line.decode("utf-8", "replace").rstrip()[:MAX_LOG_LINE]
            logger.info("server says", extra={"target": self._target.name, "line": text})

    def _end(self) -> None:
        if self._dead:
            return
        self._dead = True
        for exchange in self._pending.values():
            reason = f"MCP server {self._target.name} ended before it answered"
            exchange.inbox.put(error_message(exchange.message.raw_id, INTERNAL_ERROR, reason))
            exchange.inbox.put(None)
        self._pending.clear()
        if self.events is not None:
            self.events.put(None)
        self._on_exit()

    async def stop(self) -> None:
        """End the process and all it started: input closed, then SIGTERM, then SIGKILL to its group."""
        process = self._process
        if process is None or self._stopping:
            return
        self._stopping = True
        if process.stdin is not None:
            process.stdin.close()
        for sig in (None, signal.SIGTERM, signal.SIGKILL):
            if sig is not None:
                _signal_group(process.pid, sig)
            try:
                await asyncio.wait_for(process.wait(), STOP_SECONDS)
                break
            except TimeoutError:
                continue
        # Children it left behind die with the group.
        _signal_group(process.pid, signal.SIGKILL)
        self._end()


_LIBC = ctypes.CDLL(None)


def _die_with_worker() -> None:
    _LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _signal_group(pid: int, sig: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, sig)
