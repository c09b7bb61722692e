# What all connections of one worker process share: scratch memory, timers, clock, plans, replies, log.

from headgate_engine.context.request cimport Reply
from headgate_engine.link.budget cimport DescriptorBudget
from headgate_engine.link.reads cimport ReadSet
from headgate_engine.link.timers cimport TimerQueue
from headgate_engine.log.meter cimport RequestMeters
from headgate_engine.shared.loads cimport WorkerLoads
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef enum:
    SCRATCH_SIZE = 65536

cdef class Worker:
    cdef readonly object loop
    cdef readonly int index
    cdef readonly object segment
    cdef char* scratch              # every read lands here and is used up before control returns to the loop
    cdef object scratch_view
    # Bytes on their way to a socket. Whoever writes into one flushes it before control leaves the connection.
    cdef ByteBuffer to_client
    cdef ByteBuffer to_upstream
    cdef TimerQueue timers
    cdef ReadSet reads
    cdef dict slots                 # bind key -> BindSlot
    cdef public dict ports          # bind key -> link.protocols.Port, for what is served within tunnels
    cdef set connections            # DownstreamConnection
    cdef set arriving               # those that are accepted and not made yet; only of ports that workers share
    cdef WorkerLoads loads          # connections of all workers; None for a worker that is alone
    cdef readonly bint draining
    cdef public int64_t max_connections
    cdef public DescriptorBudget budget
    cdef list replies               # ReplyId -> Reply
    cdef int log_fd
    cdef public bint access_log_on   # the log level lets request lines through
    cdef public int log_level        # the least of those that it lets through (log.levels.LineLevel)
    cdef ByteBuffer log
    cdef object log_handle
    cdef public object records       # where records of requests go (log.records.RecordSink); None: nobody asked for them
    cdef object date_handle
    cdef public object spawn        # spawn(name, coroutine) -> task
    cdef public int64_t accepted, refused
    cdef public int64_t requests, ended          # requests that have begun, and of those the ones that are over
    cdef RequestMeters meters
    cdef public object watchers     # who wants to trace a request (link.traced); None: nobody
    # True for bytes in the scratch buffer: they stay until control returns to the loop, so a write may borrow them.
    cdef bint owns(self, const char* p) noexcept
    cdef Reply reply(self, int which)
    cdef int log_written(self) except -1
    cdef int connection_accepted(self, connection) except -1
    cdef int connection_made(self, connection) except -1
    # Also of one that is accepted and never made, since its handshake failed.
    cdef int connection_lost(self, connection) except -1
    cdef int count_connections(self) except -1
    # Client connections, with those that are accepted and not made yet.
    cdef int64_t clients(self) noexcept
