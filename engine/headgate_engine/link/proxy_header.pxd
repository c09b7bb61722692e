# The PROXY protocol header that a load balancer sends before anything else of a connection: whose it is. Versions 1 and 2:
# https://github.com/haproxy/haproxy/blob/master/doc/proxy-protocol.txt

from headgate_engine.link.timers cimport Timer
from headgate_engine.link.worker cimport Worker
from headgate_engine.wire.buffer cimport ByteBuffer

cdef enum ProxyResult:
    PROXY_MORE = 0        # not all of it has come
    PROXY_WHOLE = 1
    PROXY_NONE = 2        # what came is no such header
    PROXY_REFUSED = 3     # malformed, or of a version that is not accepted

cdef enum:
    ACCEPT_V1 = 1
    ACCEPT_V2 = 2
    MOST_TEXT = 107       # bytes of version 1, with the end of its line
    HEAD_V2 = 16
    MOST_BLOCK = 512      # bytes of version 2 behind its head: addresses, and extensions that are passed over

cdef class ProxyRules:
    cdef readonly int versions       # ACCEPT_V1 | ACCEPT_V2
    cdef readonly bint strict        # a connection without a header ends

cdef class ProxyAddresses:
    # What a header says of the client, or what is known of who opened a tunnel; of `raw` is the peer of the socket.
    cdef readonly str host
    cdef readonly int port
    cdef readonly str raw_host
    cdef readonly int raw_port
    cdef readonly tuple destination  # host and port that the client connected to; None: not known
    cdef readonly object identity    # tls.identity.CertificateIdentity of who opened the tunnel; None: it has shown none

cdef class ProxyHeader:
    cdef int versions
    cdef readonly Py_ssize_t length      # of a whole header
    cdef readonly str host               # None: the connection is the sender's own, or of no family that is known
    cdef readonly int port
    cdef readonly tuple destination      # host and port that the client connected to
    cdef readonly str fault              # why it was refused
    # p, n: all that has come since the connection began. Returns a ProxyResult.
    cdef int read(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef int _read_text(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef int _read_block(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef int _refuse(self, str fault) except -1

cdef class ProxyFront(Timer):
    # The protocol of a connection until its header has come.
    cdef object port                     # link.protocols.Port
    cdef Worker worker
    cdef object transport                # None: the connection is gone, or goes on with another protocol
    cdef ProxyRules rules
    cdef ProxyHeader header
    cdef ByteBuffer first                # what has come
    cdef int _go_on(self) except -1
    cdef int _end(self, str fault) except -1
