# Kept-alive connections to one destination. The most recently used one goes out first; calls that find none wait for
# the first that is opened or comes back.

from headgate_engine.http1.receiver cimport Limits
from headgate_engine.link.contract cimport ConnectionHome, Sink
from headgate_engine.link.upstream cimport UpstreamConnection
from headgate_engine.link.worker cimport Worker

from libc.stdint cimport int64_t

cdef class Pool(ConnectionHome):
    cdef readonly str key                    # identity across reloads
    cdef readonly bytes endpoint             # host:port for logs
    cdef Worker worker
    cdef Limits limits
    cdef object connector                    # async connector(pool, factory) -> None; raises OSError or TimeoutError
    cdef list idle                           # stack of UpstreamConnection
    cdef object waiting                      # deque of Sink
    cdef public int64_t idle_timeout_ns
    cdef public int64_t max_idle             # idle connections kept; below 0: all
    cdef public int64_t max_connections      # open and opening; 0: unlimited
    cdef readonly int64_t opened, failed, open, connecting
    cdef readonly bint closed
    cdef public object connect_meter         # observes connect time in seconds

    # The call gets on_connected() now (True) or later (False), or on_connect_failed().
    # `fresh`: a kept connection is not good enough; `probe`: look whether the peer closed it in the meantime.
    cdef bint acquire(self, Sink sink, bint fresh, bint probe) except -1
    cdef int withdraw(self, Sink sink) except -1
    cdef int _open_one(self) except -1
    cdef int _refill(self) except -1
    cdef UpstreamConnection _take_idle(self, bint probe)
    cdef int _serve(self, UpstreamConnection connection) except -1
