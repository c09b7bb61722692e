"""A server as a child process: JSON-RPC messages, one per line, on standard input and output.

Source: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio
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
from headgate.backend.mcp.targets.exchanges import Exchanges, TargetExchange
from headgate.backend.mcp.targets.guard import GUARD
from headgate.backend.mcp.targets.inbox import Inbox
from headgate.backend.mcp.targets.process_environment import process_environment
from headgate.dialect.mcp.jsonrpc import RpcMessage
from headgate.ir.mcp import StdioTarget
from headgate.net.tasks import spawn

logger = logging.getLogger("headgate.mcp.stdio")

MAX_MESSAGE = 16 * 1024 * 1024
MAX_LOG_LINE = 4096
STOP_SECONDS = 3.0
PR_SET_PDEATHSIG = 1
STDERR = 2


class StdioServer:
    """One running process. `on_exit` is called once when it has ended."""

    def __init__(self, target: StdioTarget, on_exit: Callable[[], None]) -> None:
        self._target = target
        self._on_exit = on_exit
        self._process: asyncio.subprocess.Process | None = None
        self._exchanges = Exchanges(target.name, self._write)
        self._dead = False
        self._writing = asyncio.Lock()
        self._stopping: asyncio.Task[None] | None = None

    @property
    def dead(self) -> bool:
        """True if the server accepts no more messages."""
        return self._dead

    async def start(self, fields: object = None) -> None:
        """Start the process; raises TargetFailure. `fields` is ignored."""
        del fields
        target = self._target
        try:
            self._process = await asyncio.create_subprocess_exec(
                target.cmd,
                *target.args,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=process_environment(target, os.environ),
                start_new_session=True,
                preexec_fn=partial(_prepared, os.getpid()),
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

    async def send(self, message: RpcMessage, fields: object = None) -> TargetExchange | None:
        """Send a message; return the exchange of a request, None for other messages. Raises TargetFailure."""
        del fields
        return await self._exchanges.send(message)

    def give_up(self, exchange: TargetExchange) -> None:
        """Cancel a request whose client has disconnected; the notification is sent in the background."""
        self._exchanges.give_up(exchange)

    async def _write(self, text: bytes) -> None:
        # Writers wait for the lock, so the transport's buffer, which has no limit, holds one message at most.
        async with self._writing:
            pipe = None if self._process is None else self._process.stdin
            if self._dead or self._stopping is not None or pipe is None or pipe.is_closing():
                raise TargetFailure("the server is not running")
            # A line break would end the message. In JSON it stands between tokens only, where a blank is equal.
            pipe.write(text.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n")
            try:
                await pipe.drain()
            except OSError as error:
                raise TargetFailure("the server closed its input") from error

    async def _watch(self, process: asyncio.subprocess.Process, reading: asyncio.Task[None]) -> None:
        """End the exchanges when the process has exited, even if one of its children keeps its output open."""
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
                    self._exchanges.receive(line.strip())
        except ValueError:
            logger.error("message is too long", extra={"target": self._target.name, "limit": MAX_MESSAGE})
        except OSError as error:
            logger.warning("cannot read", extra={"target": self._target.name, "error": str(error)})
        finally:
            self._end()
            await self.stop()

    def events(self) -> Inbox:
        """Return a new inbox for unsolicited messages, with those not read yet; the previous inbox ends."""
        return self._exchanges.events()

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
        self._exchanges.end(stopped=self._stopping is not None)
        self._on_exit()

    async def stop(self) -> None:
        """End the process and its children: close its input, then send SIGTERM, then SIGKILL to its process group.

        Continues to the end even if the caller is cancelled.
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
        # Children that the process left behind are in its group.
        _signal_group(process.pid, signal.SIGKILL)
        GUARD.release(process.pid)
        self._end()


_LIBC = ctypes.CDLL(None)


def _prepared(worker: int) -> None:
    """Prepare the child before exec: the kernel kills it when the worker ends, and it inherits no other descriptors."""
    _LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != worker:
        os._exit(1)
    # asyncio leaves the child a second descriptor of each pipe, which would hide that the program closes its output.
    for name in os.listdir("/proc/self/fd"):
        if int(name) > STDERR:
            with contextlib.suppress(OSError):
                os.set_inheritable(int(name), False)


async def _exit_of(process: asyncio.subprocess.Process) -> None:
    """Return when a process has exited. Its wait() may not return while other processes hold its pipes."""
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
