# Both sides of a TLS handshake: an accepted connection, whose first message chooses the listener, and one to a backend.

from headgate_engine.link.secure cimport SecureTransport
from headgate_engine.tls.hello cimport ClientHello
from headgate_engine.wire.buffer cimport ByteBuffer

cdef class SecureServer(SecureTransport):
    cdef object port             # link.protocols.Port
    cdef ClientHello hello
    cdef ByteBuffer first        # of a hello that comes in several reads
    cdef bint settled            # open, or failed
    cdef object awaited          # task that makes its TlsContext; None: nothing is waited for
    cdef bint cut_short          # the client has ended the connection without saying so in TLS, and that is being told
    cdef public object proxied, connect_head     # as in link/face
    # The listener does no TLS: what came goes on as it is.
    cdef int _settle(self) except -1
    cdef int _await(self, object task, const char* p, Py_ssize_t n) except -1
    cdef bint _choose(self, object chosen, const char* p, Py_ssize_t n) except -1
    cdef int _pass_on(self, const char* p, Py_ssize_t n) except -1

cdef class SecureClient(SecureTransport):
    cdef object factory          # makes the protocol
    cdef object waiter           # future of the handshake; None: opened() is over
    cdef object approve          # approve(self), raises OSError; None: nobody asks
    cdef int _refuse(self, error) except -1
    cdef bint _awaited(self) except -1
