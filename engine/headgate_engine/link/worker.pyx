"""Shared state of a worker process and its control face for Python; see worker.pxd."""

from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.buffer cimport PyBUF_WRITE
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdlib cimport free, malloc

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.request cimport Reply
from headgate_engine.link.budget cimport DescriptorBudget
from headgate_engine.link.reasons cimport REPLY_COUNT
from headgate_engine.link.reads cimport ReadSet
from headgate_engine.link.timers cimport TimerQueue
from headgate_engine.log.meter cimport RequestMeters
from headgate_engine.plan.plans cimport BindPlan, BindSlot
from headgate_engine.shared.loads cimport WorkerLoads
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.http1.codec cimport set_date
from headgate_engine.http2 cimport output as http2_output

import asyncio
import logging
import resource
import time

from headgate_engine.link import reasons

cdef extern from "<unistd.h>" nogil:
    ssize_t write(int fd, const void* data, size_t n)

logger = logging.getLogger("headgate.worker")

cdef enum:
    # A pipe takes writes up to this size whole (PIPE_BUF), so that lines of several workers never mix.
    LOG_CHUNK = 4096
    # Log lines wait at most this many bytes in memory.
    LOG_LIMIT = 4194304

# Names of RFC 9110 section 5.6.7, whatever the locale.
cdef tuple DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
cdef tuple MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

# Longest time a log line waits for company, in seconds.
LOG_DELAY = 0.02
# Clients that are refused because too many are open are logged once in this time, in seconds: a flood of them is no flood of lines.
TELL_SECONDS = 10.0
# When that was logged last; a process has one worker.
cdef int64_t told_ns = 0


cdef class Worker:
    """What all connections of one worker process share.

    loop: a uvloop event loop. index: number of this worker, from 0. segment: shared memory (shared.segment.Segment).
    log_fd: where access-log lines are written, -1: nowhere. spawn: `spawn(name, coroutine)`, which owns the task.
    """

    def __cinit__(self):
        self.scratch = <char*>malloc(SCRATCH_SIZE)
        if self.scratch == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.scratch)

    def __init__(self, loop, segment, int index, int log_fd, spawn):
        self.loop = loop
        self.segment = segment
        self.index = index
        self.log_fd = log_fd
        self.spawn = spawn
        self.access_log_on = True
        self.scratch_view = PyMemoryView_FromMemory(self.scratch, SCRATCH_SIZE, PyBUF_WRITE)
        self.to_client = ByteBuffer()
        self.to_upstream = ByteBuffer()
        self.log = ByteBuffer()
        self.timers = TimerQueue(loop)
        self.reads = ReadSet(loop)
        self.reads.scratch = self.scratch
        self.reads.room = SCRATCH_SIZE
        self.slots = {}
        self.ports = {}
        self.connections = set()
        self.arriving = set()
        self.replies = [Reply(500, b"internal error")] * REPLY_COUNT
        self.budget = DescriptorBudget(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self.max_connections = self.budget.client_share()
        self.meters = RequestMeters(segment)
        self._tick_date()

    # -- plans and replies -------------------------------------------------------------------------------------------
    def set_replies(self, dict replies):
        """replies: name in link.reasons.REPLY_IDS -> Reply; every name must be there."""
        missing = reasons.REPLY_IDS.keys() - replies.keys()
        if missing:
            raise ValueError(f"no reply for {sorted(missing)}")
        for name, which in reasons.REPLY_IDS.items():
            self.replies[which] = replies[name]

    def set_bind(self, str key, BindPlan plan):
        """Installs or swaps the plan of a port; connections take it up with their next request."""
        slot = self.slots.get(key)
        if slot is None:
            self.slots[key] = BindSlot(key, plan)
        else:
            (<BindSlot>slot).plan = plan

    def drop_bind(self, str key):
        """Forgets a port and drains its connections."""
        self.slots.pop(key, None)
        for connection in list(self.connections):
            if connection.bind_key == key:
                connection.close_if_idle(monotonic_ns())

    def slot(self, str key):
        """What connections of a port hold (plan.plans.BindSlot); KeyError before set_bind()."""
        return self.slots[key]

    # -- life of connections -----------------------------------------------------------------------------------------
    def share_loads(self, WorkerLoads loads not None):
        if not 0 <= self.index < loads.workers:
            raise IndexError(f"there is no worker {self.index}")
        self.loads = loads

    cdef int count_connections(self) except -1:
        if self.loads is not None:
            self.loads.put(self.index, self.clients())
        return 0

    cdef int64_t clients(self) noexcept:
        return len(self.connections) + len(self.arriving)

    cdef int connection_accepted(self, connection) except -1:
        self.arriving.add(connection)
        return self.count_connections()

    cdef int connection_made(self, connection) except -1:
        self.arriving.discard(connection)
        if not self.admit():
            return False
        self.accepted += 1
        self.connections.add(connection)
        self.count_connections()
        return True

    def admit(self):
        global told_ns
        if len(self.connections) < self.max_connections and self.budget.admits(self.clients()):
            return True
        cdef int64_t now_ns = monotonic_ns()
        self.refused += 1
        if not told_ns or now_ns - told_ns >= TELL_SECONDS * 1e9:
            told_ns = now_ns
            logger.warning("client connections refused: too many are open", extra={
                "open": len(self.connections), "limit": self.max_connections, "refused": self.refused})
        return False

    cdef int connection_lost(self, connection) except -1:
        self.connections.discard(connection)
        self.arriving.discard(connection)
        return self.count_connections()

    def begin_drain(self):
        """From now on every response says `connection: close`."""
        self.draining = True

    def close_idle(self, double quiet_s=0.0):
        """Closes connections that have had no request in progress for `quiet_s` seconds; returns how many."""
        cdef int64_t before = monotonic_ns() - <int64_t>(quiet_s * 1e9)
        closed = 0
        for connection in list(self.connections):
            if connection.close_if_idle(before):
                closed += 1
        return closed

    def abort_all(self):
        """Aborts every client connection, at the end of the drain deadline."""
        for connection in [*self.connections, *self.arriving]:
            connection.abort_now()

    def connection_count(self):
        return len(self.connections)

    def arriving_count(self):
        return len(self.arriving)

    def idle_count(self):
        return sum(1 for connection in self.connections if connection.is_idle)

    def stats(self):
        """Numbers of this worker for the config dump and /memory."""
        return {
            "connections": len(self.connections),
            "idle": self.idle_count(),
            "accepted": self.accepted,
            "refused": self.refused,
            "requests": self.requests,
            "in_flight": self.requests - self.ended,
        }

    # -- hot helpers -------------------------------------------------------------------------------------------------
    cdef bint owns(self, const char* p) noexcept:
        return self.scratch <= p < self.scratch + SCRATCH_SIZE

    cdef Reply reply(self, int which):
        return <Reply>self.replies[which]

    # -- access log --------------------------------------------------------------------------------------------------
    cdef int log_written(self) except -1:
        """Called after a line was put into `log`."""
        if self.log.length >= LOG_CHUNK:
            write_lines(self)        # a timer that runs is kept: a new one for each piece would cost more than the piece
        elif self.log_handle is None:
            self.log_handle = self.loop.call_later(LOG_DELAY, self._flush_log)
        return 0

    def _flush_log(self):
        if self.log_handle is not None:
            self.log_handle.cancel()
            self.log_handle = None
        write_lines(self)

    # -- date header, once a second ----------------------------------------------------------------------------------
    def _tick_date(self):
        now = time.time()
        set_date(http_date(now))
        http2_output.set_date(http_date(now))
        self.date_handle = self.loop.call_later(1.0 - now % 1.0 + 0.001, self._tick_date)

    async def aclose(self):
        """Flushes the last answers, then stops the timers and flushes the log."""
        await asyncio.sleep(0)
        self._flush_log()
        self.timers.close()
        self.reads.close()
        if self.date_handle is not None:
            self.date_handle.cancel()


cdef int write_lines(Worker worker) except -1:
    """Writes the lines that wait, and keeps those that the file takes later."""
    cdef ByteBuffer log = worker.log
    cdef Py_ssize_t end, sent
    while log.length:
        end = last_line_end(log.data, min(log.length, LOG_CHUNK))
        if end == 0:
            end = next_line_end(log.data, log.length)
        sent = write(worker.log_fd, log.data, end)
        if sent >= 0:
            log.consume(sent)
        elif errno == EAGAIN and log.length < LOG_LIMIT:
            if worker.log_handle is None:
                worker.log_handle = worker.loop.call_later(LOG_DELAY, worker._flush_log)
            return 0
        elif errno != EINTR:
            log.clear()       # nobody reads the log: dropping it beats growing without bound
    return 0


def http_date(double now):
    cdef object at = time.gmtime(now)
    day = f"{DAYS[at.tm_wday]}, {at.tm_mday:02} {MONTHS[at.tm_mon - 1]} {at.tm_year:04}"
    return f"{day} {at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} GMT".encode()


cdef Py_ssize_t last_line_end(const char* data, Py_ssize_t n) noexcept nogil:
    while n > 0 and data[n - 1] != b"\n":
        n -= 1
    return n


cdef Py_ssize_t next_line_end(const char* data, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i = 0
    while i < n and data[i] != b"\n":
        i += 1
    return min(i + 1, n)
