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
from collections.abc import Callable
from functools import partial

from headgate.backend.mcp.failure import TargetFailure
from headgate.backend.mcp.targets.guard import GUARD
from headgate.backend.mcp.targets.inbox import Inbox
from headgate.dialect.mcp.jsonrpc import (
    INTERNAL_ERROR,
    Kind,
    Message,
    NotAMessage,
    error_message,
    notification,
    parse,
    progress_token,
    same_id,
    subscription_id,
)
from headgate.dialect.mcp.methods import CANCELLED, LISTEN, PROGRESS
from headgate.ir.mcp import StdioTarget
from headgate.net.tasks import spawn

logger = logging.getLogger("headgate.mcp.stdio")

MAX_MESSAGE = 16 * 1024 * 1024
MAX_LOG_LINE = 4096
MAX_PENDING = 256
STOP_SECONDS = 3.0
# How long a server may leave the news unread that nobody waits for an answer any more.
CANCEL_SECONDS = 5.0
PR_SET_PDEATHSIG = 1
# The gateway's own secrets, which a server has no use for.
NOT_INHERITED = ("SESSION_KEY", "OIDC_COOKIE_SECRET")


class Exchange:
    """A request under way: its answer and what belongs to it arrive in `inbox`, then the end.

    `answered`: the server has answered or is gone. `failed`: with an error.
    """

    def __init__(self, message: Message) -> None:
        self.message = message
        self.inbox = Inbox()
        self.token = progress_token(message)
        self.answered = False
        self.failed = False

    def finish(self, answer: bytes | None, failed: bool) -> None:
        """Deliver the answer, if there will be one, and the end."""
        self.answered = True
        self.failed = failed
        self.inbox.finish(answer)


class StdioServer:
    """One running process. `on_exit` is called once when it has ended."""

    def __init__(self, target: StdioTarget, on_exit: Callable[[], None]) -> None:
        self._target = target
        self._on_exit = on_exit
        self._process: asyncio.subprocess.Process | None = None
        self._pending: dict[int, Exchange] = {}
        self._next_id = 0
        self._dead = False
        self._writing = asyncio.Lock()
        self._stopping: asyncio.Task[None] | None = None
        self._events = Inbox()
        self._lost = 0

    @property
    def dead(self) -> bool:
        """Whether it takes no more messages."""
        return self._dead

    async def start(self) -> None:
        """Start the process; raises TargetFailure."""
        target = self._target
        environment = {} if target.clear_env else {k: v for k, v in os.environ.items() if k not in NOT_INHERITED}
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
                preexec_fn=partial(_die_with, os.getpid()),
                limit=MAX_MESSAGE,
            )
        except (OSError, ValueError) as error:
            self._dead = True
            reason = error.strerror if isinstance(error, OSError) else None
            raise TargetFailure(f"cannot start {target.cmd}: {reason or error}") from error
        reading = spawn(f"mcp stdio {target.name}", self._read())
        spawn(f"mcp stderr {target.name}", self._read_errors())
        spawn(f"mcp exit {target.name}", self._watch(self._process, reading))
        await GUARD.watch(self._process.pid)

    async def send(self, message: Message) -> Exchange | None:
        """Pass a message on; a request gives the exchange to read its answer from. Raises TargetFailure."""
        if message.kind is not Kind.REQUEST:
            if message.method == CANCELLED:
                await self._cancel(message)
            else:
                await self._write(message.text)
            return None
        if len(self._pending) >= MAX_PENDING:
            raise TargetFailure("too many requests are under way")
        self._next_id += 1
        number = self._next_id
        exchange = self._pending[number] = Exchange(message)
        try:
            await self._write(message.with_id(b"%d" % number))
        except TargetFailure:
            self._pending.pop(number, None)
            raise
        except asyncio.CancelledError:
            self.give_up(exchange)
            raise
        return exchange

    def give_up(self, exchange: Exchange) -> None:
        """The client no longer waits: tell the server, at its leisure."""
        number = self._number_of(exchange)
        if number is not None:
            del self._pending[number]
            note = notification(CANCELLED, {"requestId": number, "reason": "the client closed its connection"})
            spawn(f"mcp cancel {self._target.name}", self._tell(note))

    async def _tell(self, note: bytes) -> None:
        with contextlib.suppress(TargetFailure, TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._write(note)

    async def _cancel(self, message: Message) -> None:
        """Pass on that a client cancels a request, whose id is another one here. One that is over is over."""
        params = message.decoded_params()
        for number, exchange in reversed(self._pending.items()):
            if same_id(exchange.message.raw_id, params.get("requestId")):
                del self._pending[number]
                # No answer is to be expected now; one that comes nevertheless is dropped.
                exchange.finish(None, failed=True)
                await self._write(notification(CANCELLED, {**params, "requestId": number}))
                return

    def _number_of(self, exchange: Exchange) -> int | None:
        return next((number for number, known in self._pending.items() if known is exchange), None)

    async def _write(self, text: bytes) -> None:
        # One at a time: what waits here is held by its request, not by the transport's unbounded buffer.
        async with self._writing:
            pipe = None if self._process is None else self._process.stdin
            if self._dead or self._stopping is not None or pipe is None or pipe.is_closing():
                raise TargetFailure("the server is not running")
            # A line break inside the message would end it; outside strings it means nothing in JSON.
            pipe.write(text.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n")
            try:
                await pipe.drain()
            except OSError as error:
                raise TargetFailure("the server closed its input") from error

    async def _watch(self, process: asyncio.subprocess.Process, reading: asyncio.Task[None]) -> None:
        """Notice the exit also when a child that the server left behind still holds its output open."""
        await _exit_of(process)
        _signal_group(process.pid, signal.SIGKILL)
        done, _ = await asyncio.wait([reading], timeout=STOP_SECONDS)
        if not done:
            self._end()
            await self.stop()

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                if line.strip():
                    self._on_line(line.strip())
        except ValueError:
            logger.error("message is too long", extra={"target": self._target.name, "limit": MAX_MESSAGE})
        except OSError as error:
            logger.warning("cannot read", extra={"target": self._target.name, "error": str(error)})
        finally:
            self._end()
            await self.stop()

    def _on_line(self, line: bytes) -> None:
        try:
            message = parse(line)
        except NotAMessage as error:
            logger.warning("not a message", extra={"target": self._target.name, "error": str(error)})
            return
        if message.kind is Kind.RESPONSE and message.raw_id not in (None, b"null"):
            self._on_response(message)
            return
        exchange = self._owner(message)
        inbox = self._events if exchange is None else exchange.inbox
        if not inbox.put(line):
            self._on_lost(message)

    def _on_response(self, message: Message) -> None:
        raw_id = message.raw_id or b""
        # Our numbers have at most as many digits as the last one given out.
        number = int(raw_id) if raw_id.isdigit() and len(raw_id) <= len(str(self._next_id)) else 0
        exchange = self._pending.pop(number, None)
        if exchange is not None and exchange.message.raw_id is not None:
            exchange.finish(message.with_id(exchange.message.raw_id), message.is_error)

    def _on_lost(self, message: Message) -> None:
        """A message found no room: the reader is too slow, or there is none."""
        self._lost += 1
        if self._lost == 1:
            logger.warning("messages are lost, the client does not read", extra={"target": self._target.name})
        if message.kind is Kind.REQUEST:
            # The server must not wait for an answer that nobody will give.
            answer = error_message(message.raw_id, INTERNAL_ERROR, "the client does not read")
            spawn(f"mcp refuse {self._target.name}", self._tell(answer))

    def _owner(self, message: Message) -> Exchange | None:
        """Return the request a notification or server request belongs to: by its token, or the only one there is."""
        listening = subscription_id(message)
        if listening is not None:
            return self._pending.get(listening) if isinstance(listening, int) else None
        token = progress_token(message) if message.method == PROGRESS else None
        if token is not None:
            return next((exchange for exchange in self._pending.values() if exchange.token == token), None)
        # Subscriptions last; what is for them says so.
        waiting = (exchange for exchange in self._pending.values() if exchange.message.method != LISTEN)
        first = next(waiting, None)
        return first if next(waiting, None) is None else None

    def events(self) -> Inbox:
        """Return where arrives what the server says unasked, with what it said before; an earlier one ends."""
        earlier, self._events = self._events, Inbox()
        self._events.take_over(earlier)
        if self._dead:
            self._events.finish()
        return self._events

    async def _read_errors(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        start = b""
        too_long = False
        while piece := await self._process.stderr.read(MAX_LOG_LINE):
            *lines, rest = (start + piece).split(b"\n")
            for line in lines:
                if not too_long:
                    self._log(line)
                too_long = False
            start = rest
            if len(start) >= MAX_LOG_LINE:
                if not too_long:
                    self._log(start)
                too_long = True
                start = b""
        if start and not too_long:
            self._log(start)

    def _log(self, line: bytes) -> None:
        text = line[:MAX_LOG_LINE].decode("utf-8", "replace").rstrip()
        logger.info("server says", extra={"target": self._target.name, "line": text})

    def _end(self) -> None:
        if self._dead:
            return
        self._dead = True
        for exchange in self._pending.values():
            reason = f"MCP server {self._target.name} ended before it answered"
            exchange.finish(error_message(exchange.message.raw_id, INTERNAL_ERROR, reason), failed=True)
        self._pending.clear()
        self._events.finish()
        self._on_exit()

    async def stop(self) -> None:
        """End the process and all it started: input closed, then SIGTERM, then SIGKILL to its group.

        Goes on to the end even when the caller is cancelled.
        """
        if self._process is None:
            return
        if self._stopping is None:
            self._stopping = spawn(f"mcp stop {self._target.name}", self._stop(self._process))
        await asyncio.shield(self._stopping)

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
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
        GUARD.release(process.pid)
        self._end()


_LIBC = ctypes.CDLL(None)


def _die_with(worker: int) -> None:
    """Run in the child before its program: the kernel ends it when the worker ends."""
    _LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != worker:
        os._exit(1)


async def _exit_of(process: asyncio.subprocess.Process) -> None:
    """Return when a process has ended. Its wait() may return only when nobody holds its pipes any more."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    except OSError:
        await process.wait()
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _signal_group(pid: int, sig: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, sig)
