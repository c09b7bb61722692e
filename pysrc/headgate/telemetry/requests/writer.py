"""The thread that reads records from the workers' pipes and writes them to the database.

A worker never waits for this thread: records that do not fit into its pipe are queued in the worker, and dropped when
the queue is full. While the database cannot be written, up to MAX_HELD records or MAX_HELD_BYTES are queued here, and
then the pipes are not read.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final

from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests.records import Row, row
from headgate.telemetry.requests.stores import LogFailure, LogWriter, RefusedRecord, open_to_write

logger = logging.getLogger("headgate.requests")

BATCH: Final = 500
BATCH_BYTES: Final = 4 << 20
MAX_HELD: Final = 5_000
MAX_HELD_BYTES: Final = 32 << 20
READ_SIZE: Final = 262_144
# The maximum length of a line in bytes.
MAX_LINE: Final = 4 * 1024 * 1024
# The maximum time that a record waits until its batch is written.
DELAY_SECONDS: Final = 0.1
FIRST_RETRY, LAST_RETRY = 0.5, 30.0
TRIM_EVERY: Final = 1_000
# How often the age of records is looked at, where it has a limit.
AGE_SECONDS: Final = 60.0
# Time for a write that does not come back, and for one more attempt.
END_SECONDS: Final = 8.0

Count = Callable[[int], None]


class Gatherer:
    """Writes the records from the pipes of all workers to one database.

    `written` and `dropped` are called with numbers of records, for the metrics.
    """

    def __init__(self, store: RequestLogStore, written: Count, dropped: Count) -> None:
        self.store = store
        self._written = written
        self._dropped = dropped
        self._database: LogWriter | None = None
        # Rows with their sizes, and the sum of these.
        self._held: deque[tuple[Row, int]] = deque()
        self._held_bytes = 0
        # How many of the first rows the next batch has, 0: not chosen yet. A batch that may have been written is tried
        # again as it was, under the same number.
        self._batch_rows = 0
        self._batch = 1
        self._writer = uuid.uuid4().hex
        self._look_at = 0.0
        self._since = 0.0
        self._retry_at = 0.0
        self._delay = FIRST_RETRY
        self._failing = False
        self._until_trim = 0
        self._partial: dict[int, bytes] = {}
        self._new: list[int] = []
        self._lock = threading.Lock()
        self._stopping = False
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="request log", daemon=True)

    def start(self) -> None:
        """Start the thread, which opens the database. A failure to open it is logged."""
        self._thread.start()

    def add_pipe(self, descriptor: int) -> None:
        """Read records from a pipe until its end. This takes ownership of the descriptor."""
        os.set_blocking(descriptor, False)
        with self._lock:
            self._new.append(descriptor)
        self._wake()

    def stop(self, seconds: float = END_SECONDS) -> None:
        """Write the records that are in the pipes and stop the thread. Waits at most `seconds`."""
        self._stopping = True
        self._wake()
        self._thread.join(seconds)

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b"\0")

    # -- the thread ----------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            self._open()
            while not self._stopping:
                self._turn()
            self._read_all()
            self._flush()
        except Exception:  # task boundary: the gateway continues without the request log
            logger.exception("the request log ended")
        finally:
            self._end()

    def _turn(self) -> None:
        now = time.monotonic()
        if self._held and now >= self._due():
            self._flush()
            now = time.monotonic()
        wait = max(0.0, self._due() - now) if self._held or self._failing else self._rest(now)
        if self._full():
            self._pause(wait or 0.0)
            return
        for key, _ in self._selector.select(wait):
            if key.fd == self._wake_read:
                self._woken()
            else:
                self._read(key.fd)
        if self._failing and not self._held and time.monotonic() >= self._retry_at:
            self._open()

    def _full(self) -> bool:
        return len(self._held) >= MAX_HELD or self._held_bytes >= MAX_HELD_BYTES

    def _due(self) -> float:
        if self._failing:
            return self._retry_at
        return 0.0 if len(self._held) >= BATCH else self._since + DELAY_SECONDS

    def _rest(self, now: float) -> float | None:
        """Return how long there is nothing to do without a new record, in seconds: None is for ever."""
        if self.store.max_age_ms is None:
            return None
        if now >= self._look_at:
            self._trim()
        return max(0.0, self._look_at - now)

    def _pause(self, seconds: float) -> None:
        """Wait without reading the pipes, so that the workers queue their records."""
        with selectors.DefaultSelector() as only:
            only.register(self._wake_read, selectors.EVENT_READ)
            if only.select(seconds):
                self._woken()

    def _woken(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_read, 64):
                pass
        with self._lock:
            new, self._new = self._new, []
        for descriptor in new:
            self._selector.register(descriptor, selectors.EVENT_READ)

    def _read(self, descriptor: int) -> bool:
        """Read available records from a pipe. Return False if there is nothing to read."""
        try:
            data = os.read(descriptor, READ_SIZE)
        except BlockingIOError:
            return False
        if not data:
            # The worker has ended. An incomplete record is dropped.
            self._partial.pop(descriptor, None)
            self._selector.unregister(descriptor)
            os.close(descriptor)
            return False
        lines = (self._partial.pop(descriptor, b"") + data).split(b"\n")
        rest = lines.pop()
        if rest and len(rest) <= MAX_LINE:
            self._partial[descriptor] = rest
        if not self._held:
            self._since = time.monotonic()
        for line in lines:
            found = row(line)
            if found is None:
                self._dropped(1)
            else:
                self._held.append((found, len(line)))
                self._held_bytes += len(line)
        return True

    def _read_all(self) -> None:
        self._woken()
        for key in list(self._selector.get_map().values()):
            if key.fd != self._wake_read:
                while not (self._full() and self._failing) and self._read(key.fd):
                    if len(self._held) >= BATCH and not self._failing:
                        self._flush()

    # -- the database --------------------------------------------------------------------------------------------------
    def _open(self) -> None:
        try:
            self._database = open_to_write(self.store, self._writer)
        except LogFailure as error:
            self._failed(error)
            return
        # A database that can be opened may still not be writable. If records are queued, writing them will show it.
        if not self._held:
            self._succeeded()

    def _flush(self) -> None:
        """Write what is held, in batches. The rest stays when one cannot be written."""
        while self._held:
            if self._database is None:
                self._open()
            if self._database is None:
                return
            if not self._batch_rows:
                self._choose_batch()
            rows = [one for one, _ in islice(self._held, self._batch_rows)]
            try:
                self._database.add(rows, self._batch)
            except RefusedRecord as error:
                self._divide(error)
                continue
            except LogFailure as error:
                self._failed(error)
                return
            self._written(len(rows))
            self._until_trim -= len(rows)
            self._forget_batch()
            self._succeeded()
        if self._until_trim <= 0:
            self._until_trim = TRIM_EVERY
            self._trim()

    def _choose_batch(self) -> None:
        size = 0
        for _, length in self._held:
            size += length
            self._batch_rows += 1
            if self._batch_rows == MAX_HELD or size >= BATCH_BYTES:
                break

    def _forget_batch(self) -> None:
        for _ in range(self._batch_rows):
            self._held_bytes -= self._held.popleft()[1]
        self._batch_rows = 0
        self._batch += 1

    def _divide(self, error: RefusedRecord) -> None:
        """Go on with half of a batch that was refused for one of its records, or drop that record."""
        self._batch += 1
        if self._batch_rows > 1:
            self._batch_rows //= 2
            return
        logger.error("the database refused a record", extra={"database": self.store.shown, "error": str(error)})
        self._forget_batch()
        self._dropped(1)

    def _trim(self) -> None:
        self._look_at = time.monotonic() + AGE_SECONDS
        if self._database is not None:
            # A database that has gone away is noticed with the next record.
            with contextlib.suppress(LogFailure):
                if self._database.trim():
                    self._look_at = 0.0

    def _failed(self, error: LogFailure) -> None:
        if self._database is not None:
            with contextlib.suppress(LogFailure):
                self._database.close()
            self._database = None
        if not self._failing:
            logger.error(
                "request log cannot be written; traffic is not affected, and writing is retried",
                extra={"database": self.store.shown, "error": str(error)},
            )
        self._failing = True
        self._retry_at = time.monotonic() + self._delay
        self._delay = min(self._delay * 2, LAST_RETRY)

    def _succeeded(self) -> None:
        if self._failing:
            logger.info("request log is written again", extra={"database": self.store.shown})
        self._failing = False
        self._delay = FIRST_RETRY

    def _end(self) -> None:
        if self._held:
            self._dropped(len(self._held))
            logger.error(
                "records of requests are dropped", extra={"database": self.store.shown, "records": len(self._held)}
            )
        if self._database is not None:
            with contextlib.suppress(LogFailure):
                self._database.close()
        for key in list(self._selector.get_map().values()):
            os.close(key.fd)
        self._selector.close()
        os.close(self._wake_write)
