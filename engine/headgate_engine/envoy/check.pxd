# What an authorization service is asked over gRPC, and what it allows; see check.pyi.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.envoy.header_edits cimport HeaderEdits
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class CheckQuestion:
    cdef object sent               # frozenset of names that the service sees, bytes; None: all
    cdef int64_t body_bytes        # -1: the service sees nothing of the body
    cdef bint as_bytes
    cdef bytes context             # context extensions, encoded

    cdef int put_peer(self, ByteBuffer out, char tag, address, port, bytes principal, bytes certificate) except -1
    cdef int put_ends(self, ByteBuffer out, RequestContext ctx) except -1
    cdef int put_request(self, ByteBuffer out, RequestContext ctx, int64_t started_ns, str version) except -1
    cdef int put_headers(self, ByteBuffer out, RequestContext ctx) except -1
    cdef int put_entry(self, ByteBuffer out, bytes name, bytes value) except -1

cdef class Allowance:
    cdef HeaderEdits request, response
    cdef int read(self, const char* p, Py_ssize_t n) except -1
