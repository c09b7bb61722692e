# What all connections of a generator share: where they lead to, what is sent, when it is due, and what became of it.

from headgate_engine.load.arrivals cimport Arrivals
from headgate_engine.load.ledger cimport LoadLedger
from headgate_engine.load.request cimport LoadRequest
from headgate_engine.tls.context cimport KeptSession, TlsContext

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    SCRATCH = 65536

cdef class LoadTarget:
    cdef readonly int family
    cdef readonly object address         # as socket.connect() takes it
    cdef readonly TlsContext tls         # None: plain
    cdef readonly str server_name
    cdef readonly bint check_name

cdef class LoadCore:
    cdef LoadTarget target
    cdef tuple requests
    cdef Py_ssize_t turn                 # of the next request
    cdef uint64_t serial
    cdef readonly LoadLedger ledger
    cdef readonly Arrivals arrivals      # None: the run has not begun
    cdef KeptSession session             # of TLS
    cdef bint reuse                      # connections stay open
    # The generator sleeps between arrivals and reads afterwards: the kernel says when an answer has come.
    cdef bint stamped
    cdef int untold                      # reads in a row of which it has not said so
    cdef int64_t looked_ns               # reads came after this time, and are asked when; 0: they are not asked
    cdef int64_t wall_offset_ns          # the time of day without the monotonic clock's
    cdef int epoll
    cdef char* scratch                   # what a read brings
    cdef char* opened                    # what TLS makes of it
    cdef readonly int64_t in_flight      # requests under way
    cdef readonly Py_ssize_t ready       # connections that can take requests
    # Places of connections that have room, once for each request that they have room for. In the order in which they became free,
    # so that all of them are used.
    cdef int* free
    cdef Py_ssize_t free_at, free_count, free_room

    cdef list closed                     # LoadLine: to be opened again
    cdef list unsent                     # LoadLine: with something to push()

    cdef int release(self, int place) except -1
    cdef LoadRequest next_request(self)
    # A connection could not be made.
    cdef int unconnected(self, str kind, int64_t now_ns) except -1
