# A connection of a generator: its socket, TLS, and what the socket does not take at once.

from headgate_engine.load.core cimport LoadCore
from headgate_engine.load.request cimport LoadRequest
from headgate_engine.tls.connection cimport TlsConnection
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint32_t

cdef enum LineState:
    LINE_CLOSED = 0
    LINE_CONNECTING = 1
    LINE_HANDSHAKE = 2
    LINE_READY = 3

cdef class LoadLine:
    cdef LoadCore core
    cdef int place                   # in the generator's list
    cdef object socket
    cdef int fd
    cdef int state                   # LineState
    cdef uint32_t interest           # what epoll tells of it
    cdef ByteBuffer outbox           # what the socket has not taken
    cdef TlsConnection tls
    cdef readonly Py_ssize_t active  # requests under way
    cdef bint served                 # an answer has come on this connection
    cdef Py_ssize_t offered          # its entries in the list of free places
    cdef int64_t opened_ns, again_ns  # when it began to connect; closed: when it may try again

    # -- for the generator -------------------------------------------------------------------------------------------
    cdef int open(self, int64_t now_ns) except -1
    cdef int on_event(self, uint32_t events, int64_t now_ns) except -1
    cdef int on_readable(self, int64_t now_ns) except -1
    # Gives up what has waited since before `before_ns`.
    cdef int overdue(self, int64_t before_ns, int64_t now_ns) except -1
    # All requests under way fail for this reason; nothing is opened again. `waited`: see LoadLedger.lost().
    cdef int close(self, str kind, bint waited, int64_t now_ns) except -1
    # -- for protocols: overridden --------------------------------------------------------------------------------------
    cdef int opened(self, int64_t now_ns) except -1
    cdef Py_ssize_t room(self) noexcept
    cdef int begin(self, LoadRequest request, int64_t due_ns, int64_t now_ns) except -1
    # Sends what begin() has put together for several requests.
    cdef int push(self, int64_t now_ns) except -1
    cdef int received(self, const char* p, Py_ssize_t n, int64_t now_ns) except -1
    cdef int ended(self, int64_t now_ns) except -1
    cdef int abandon(self, str kind, bint waited, int64_t now_ns) except -1
    cdef int64_t oldest_ns(self) noexcept
    # -- for protocols: called ----------------------------------------------------------------------------------------
    cdef int transmit(self, const char* p, Py_ssize_t n, int64_t now_ns) except -1
    # Requests under way fail, and the connection is opened again.
    cdef int broken(self, str kind, int64_t now_ns) except -1
    cdef int offer(self) except -1
    cdef int _connected(self, int64_t now_ns) except -1
    cdef int _ready(self, int64_t now_ns) except -1
    cdef int _failed(self, str kind, int64_t now_ns) except -1
    cdef int _drop(self) except -1
    cdef int stamp(self) except -1
    cdef int64_t _came_ns(self, int64_t wall_ns, int64_t now_ns) noexcept
    cdef int _watch(self, uint32_t interest) except -1
    cdef int _write(self, const char* p, Py_ssize_t n, int64_t now_ns) except -1
    cdef int _flush(self, int64_t now_ns) except -1
    cdef int _decrypt(self, Py_ssize_t n, int64_t now_ns) except -1
