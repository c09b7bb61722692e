# The TLS settings of one listener, or of the connections to one backend: what SSL_CTX(3) holds.

from headgate_engine.tls.library cimport SSL_CTX, SSL_SESSION
from headgate_engine.tls.tickets cimport TicketKeys

# What the callbacks of a connection see; the data of its BIO.
cdef struct TlsPipe:
    const char* input
    Py_ssize_t input_len
    void* out             # ByteBuffer, borrowed
    void* kept            # KeptSession, borrowed; NULL: sessions are not kept

cdef class KeptSession:
    # The latest session with one server name at one backend, which the next connection there resumes. Another name must not
    # have it: what is resumed is not verified again.
    cdef SSL_SESSION* session        # NULL: none yet

cdef class TlsContext:
    cdef SSL_CTX* ctx
    cdef readonly bint server
    cdef readonly tuple alpn         # bytes, in the order of preference
    cdef bytes alpn_wire             # the same as RFC 7301 section 3.1 has it
    cdef readonly bint lacks_roots   # trust_system() is to be called before the first connection
    # The peer is asked for a certificate that a root has signed. A server may admit one that has none, as a stranger.
    cdef readonly bint verified
    cdef TicketKeys tickets          # of a server; None: no tickets
    # Of a server: approve(transport), behind the handshake, may refuse the client by raising OSError; None: nobody asks.
    cdef public object approve

    cdef int check(self) except -1   # raises before __init__()
    cdef int _use_pair(self, bytes cert, bytes key) except -1
    cdef int _trust(self, bytes roots) except -1
    cdef int _set_alpn(self, tuple names) except -1
    cdef int _bound(self, str least, str most, tuple suites) except -1
