# The TLS of one connection, between bytes of the network and bytes of the application. It owns no socket: what the network
# brings is borrowed for the length of a call, and what is to be sent is appended to a buffer of the caller.

from headgate_engine.tls.context cimport KeptSession, TlsContext, TlsPipe
from headgate_engine.tls.library cimport SSL
from headgate_engine.wire.buffer cimport ByteBuffer

cdef enum TlsState:
    TLS_HANDSHAKE = 0
    TLS_OPEN = 1
    TLS_ENDED = 2         # the peer has sent close_notify: it sends no more
    TLS_FAILED = 3        # `fault` says why

cdef class TlsConnection:
    cdef SSL* ssl
    cdef TlsContext context
    cdef TlsPipe pipe
    cdef KeptSession kept
    cdef ByteBuffer out
    cdef readonly int state
    cdef readonly str fault
    cdef readonly str reason         # one of tls.faults.REASONS
    # From here on, p is what the network has brought. It is used up by handshake() and read().
    cdef void take(self, const char* p, Py_ssize_t n) noexcept
    # Goes on with the handshake. Returns the state.
    cdef int handshake(self) except -1
    # Up to `room` decrypted bytes; 0: there are none now, or the state has changed.
    cdef Py_ssize_t read(self, char* into, Py_ssize_t room) except -1
    # Encrypts all of it. False: the state does not allow it.
    cdef bint write(self, const char* p, Py_ssize_t n) except -1
    # Says that nothing more is sent (close_notify).
    cdef int end(self) except -1
    cdef bint unread(self) noexcept
    cdef int _failed(self, int result) except -1
