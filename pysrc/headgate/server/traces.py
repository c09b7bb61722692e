"""Traces in the supervisor: offers each watcher to all workers, and reads what the one that takes it writes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable
from typing import Final

from headgate.server.control import Unwatch, WatchCommand
from headgate.server.worker_pool import WorkerHandle
from headgate.trace.offer import CLAIMS, BadExpression, TooManyWatchers
from headgate_engine.shared.claims import SLOTS, SlotClaims
from headgate_engine.shared.segment import Segment

logger = logging.getLogger("headgate.trace")

# Fewer than there are slots: numbers on offer must not share one.
MAX_WATCHERS: Final = SLOTS // 2
READ_SIZE: Final = 65536


class TraceWatch:
    """One watcher. `lines()` yields the events of its request. Call close() when nothing reads them any more."""

    def __init__(self, hub: TraceHub, message: WatchCommand) -> None:
        self.message = message
        self._hub = hub
        self._reader, self.writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._waiting: asyncio.Future[None] | None = None

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the events. Ends with the trace, with its worker, or with a drain that comes before the trace."""
        held = b""
        while self._reader >= 0:
            try:
                data = os.read(self._reader, READ_SIZE)
            except BlockingIOError:
                await self._readable()
                continue
            if not data:
                return
            self._hub.release(self)
            *whole, held = (held + data).split(b"\n") if b"\n" in data else (held + data,)
            for line in whole:
                if not line:
                    return
                yield line

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        loop.add_reader(self._reader, self._wake)
        try:
            await self._waiting
        finally:
            if self._reader >= 0:
                loop.remove_reader(self._reader)
            self._waiting = None

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def close(self) -> None:
        """Stop waiting or reading. A traced request continues."""
        self._hub.forget(self)
        reader, self._reader = self._reader, -1
        if reader >= 0:
            with contextlib.suppress(RuntimeError, OSError):
                asyncio.get_running_loop().remove_reader(reader)
            os.close(reader)
        self._wake()


class TraceHub:
    """All watchers, in order of arrival. `workers` returns the current workers."""

    def __init__(self, segment: Segment, workers: Callable[[], list[WorkerHandle]]) -> None:
        self._claims = SlotClaims(segment, CLAIMS)
        self._workers = workers
        self._watches: dict[int, TraceWatch] = {}
        self._number = 0
        self._draining = False

    @property
    def waiting(self) -> int:
        """The number of watchers that have no request yet."""
        return sum(self._claims.offered(number) for number in self._watches)

    async def watch(self, expression: str | None, body_limit: int) -> TraceWatch:
        """Return a new watcher that all workers know. `body_limit`: how many bytes of a body it may read. Raises
        TooManyWatchers or BadExpression."""
        if len(self._watches) >= MAX_WATCHERS or self._draining:
            raise TooManyWatchers("the gateway drains" if self._draining else f"{MAX_WATCHERS} wait already")
        self._number += 1
        while not self._claims.offer(self._number):
            self._number += 1
        found = TraceWatch(self, WatchCommand(self._number, expression, body_limit))
        self._watches[self._number] = found
        try:
            answers = await asyncio.gather(*(self._offer(worker, found) for worker in self._workers()))
            errors = [error for answer in answers for error in answer]
            if errors:
                raise BadExpression(errors[0])
        except BaseException:
            found.close()
            raise
        return found

    async def _offer(self, worker: WorkerHandle, watch: TraceWatch) -> tuple[str, ...]:
        try:
            return await worker.watch(watch.message, watch.writer)
        except (ConnectionError, TimeoutError):
            logger.debug("worker does not take watchers", extra={"worker": worker.index})
            return ()

    async def readmit(self, worker: WorkerHandle) -> None:
        """Tell a new worker about the waiting watchers."""
        for number in sorted(self._watches):
            watch = self._watches.get(number)
            if watch is not None and watch.writer >= 0 and self._claims.offered(number):
                await self._offer(worker, watch)

    def release(self, watch: TraceWatch) -> None:
        """Have the other workers close the pipe when one traces a request: the pipe then ends with that trace."""
        writer, watch.writer = watch.writer, -1
        if writer >= 0:
            os.close(writer)
            for worker in self._workers():
                worker.send(Unwatch(watch.message.number))

    def forget(self, watch: TraceWatch) -> None:
        """Forget a watcher that nobody reads any more."""
        if self._watches.pop(watch.message.number, None) is not None:
            self._claims.take(watch.message.number)
            self.release(watch)

    def worker_died(self) -> None:
        """End the traces of a worker that has died, including those without any event."""
        for number, watch in list(self._watches.items()):
            if not self._claims.offered(number):
                self.release(watch)

    def drain(self) -> None:
        """End the watchers that still wait. Traces in progress end with their requests."""
        self._draining = True
        for number, watch in list(self._watches.items()):
            if self._claims.take(number):
                watch.close()
