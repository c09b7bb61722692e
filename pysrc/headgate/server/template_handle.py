"""The template as the supervisor sees it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from headgate.server.child import ChildProcess
from headgate.server.parent_death import adopting
from headgate.server.template import ForkOrder, WorkerStart, run_template, threads
from headgate_engine.shared.segment import Segment

logger = logging.getLogger("headgate.supervisor")

# Started with -P: modules beside it are no top-level modules.
PROGRAM: Final = str(Path(__file__).with_name("run_template.py"))
# A new template imports everything before it forks.
FORK_SECONDS: Final = 60.0
# One that dies sooner is replaced when a worker is wanted, not at once.
EARLY_SECONDS: Final = 5.0
MAX_ANSWER: Final = 1024


class TemplateHandle:
    """The template process and the channel to it. A template that dies is replaced; its workers live on.

    `wake_fds`: see WorkerStart.
    """

    def __init__(self, segment: Segment, folder: str, wake_fds: tuple[int, ...] = ()) -> None:
        self.modules: tuple[str, ...] = ()
        self._segment = segment
        self._folder = folder
        self._wake_fds = wake_fds
        self._process: ChildProcess | subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._started = 0.0
        self._watched = -1
        self._lock = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The id of the process; None while there is none."""
        return None if self._process is None else self._process.pid

    def fork(self) -> WorkerStart | None:
        """Fork the template from this process, which has neither threads nor a loop yet. A result other than None means
        that this process is now a worker.

        If a library has started a thread, the template is started as a separate program instead.
        """
        if threads() > 1:
            return None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        supervisor = os.getpid()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        pid = os.fork()
        if pid == 0:
            ours.close()
            return run_template(theirs, self._segment, self._folder, supervisor, self._wake_fds)
        theirs.close()
        self._take(ChildProcess(pid), ours)
        return None

    def _start(self) -> None:
        """Start a template with exec, because a process with threads must not be forked. Raises OSError."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        kept = -1 if self._segment.kept is None else self._segment.kept.fd
        words = [theirs.fileno(), self._segment.fd, kept, os.getpid(), self._folder, *self._wake_fds]
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", PROGRAM, *(str(word) for word in words)],
                pass_fds=(theirs.fileno(), *self._segment.descriptors, *self._wake_fds),
                stdin=subprocess.DEVNULL,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self._take(process, ours)

    def _take(self, process: ChildProcess | subprocess.Popen[bytes], channel: socket.socket) -> None:
        channel.setblocking(False)
        self._process, self._channel = process, channel
        self._started = time.monotonic()

    async def start_worker(self, index: int, form: str, levels: str, channel: int) -> ChildProcess:
        """Fork a worker with this end of its channel. Raises OSError, ConnectionError among them."""
        order = ForkOrder(index, form, levels, self.modules)
        async with self._lock:
            for last in (False, True):
                if self._process is None or self._process.poll() is not None:
                    self._forget()
                    self._start()
                self._watch()
                try:
                    return await self._order(order, channel)
                except (ConnectionError, TimeoutError) as error:
                    self.kill()
                    if last:
                        raise ConnectionError(f"the template does not start workers: {error}") from error
        raise AssertionError("unreachable")

    async def _order(self, order: ForkOrder, channel: int) -> ChildProcess:
        assert self._channel is not None
        loop = asyncio.get_running_loop()
        with adopting():
            socket.send_fds(self._channel, [json.dumps(order).encode()], [channel])
            async with asyncio.timeout(FORK_SECONDS):
                data = await loop.sock_recv(self._channel, MAX_ANSWER)
        if not data:
            raise ConnectionError("it has ended")
        answer = json.loads(data)
        if "pid" not in answer:
            raise OSError(answer["errno"], os.strerror(answer["errno"]))
        return ChildProcess(answer["pid"])

    def _watch(self) -> None:
        """Watch for the end of the process. Without pidfd support in the kernel, the start of the next worker notices
        it."""
        if self._watched >= 0 or self._process is None:
            return
        try:
            self._watched = os.pidfd_open(self._process.pid)
        except (OSError, AttributeError):
            return
        asyncio.get_running_loop().add_reader(self._watched, self._on_death)

    def _on_death(self) -> None:
        process, lived = self._process, time.monotonic() - self._started
        logger.error("template died", extra={"status": None if process is None else process.poll()})
        self._unwatch()
        if self._lock.locked():
            return  # whoever waits for a worker notices, and starts another one
        self._forget()
        if lived > EARLY_SECONDS:
            try:
                self._start()
            except OSError as error:
                logger.error("template cannot be started", extra={"error": str(error)})
            else:
                self._watch()

    def _unwatch(self) -> None:
        watched, self._watched = self._watched, -1
        if watched >= 0:
            asyncio.get_running_loop().remove_reader(watched)
            os.close(watched)

    def _forget(self) -> None:
        self._unwatch()
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        self._process = None

    def kill(self) -> None:
        """End the process at once; the next worker needs a new one."""
        process = self._process
        self._forget()
        if process is not None and process.poll() is None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
