# The first message of a TLS client (RFC 8446 section 4.1.2), read before there is anything of OpenSSL for the connection:
# its server name chooses the listener, and with it all other settings.

from headgate_engine.wire.buffer cimport ByteBuffer

cdef enum HelloResult:
    HELLO_MORE = 0        # not all of it has come
    HELLO_WHOLE = 1
    HELLO_REFUSED = 2     # no ClientHello

cdef class ClientHello:
    cdef ByteBuffer message          # of several records or reads
    cdef Py_ssize_t taken            # bytes of the stream that are in `message`
    cdef readonly str server_name    # lower case; None: the client names none
    cdef readonly str fault          # why it was refused
    # p, n: all that has come since the connection began. Returns a HelloResult.
    cdef int read(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef int _parse(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef int _name(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef int _refuse(self, str fault) except -1
