# Amazon event stream (application/vnd.amazon.eventstream), incremental: bytes may be cut anywhere.
#
# Frame: total length u32, length of the headers u32, CRC-32 of these eight bytes u32, headers, payload, CRC-32 of
# everything in front of it u32; all big endian. Header: length of the name u8, name, type u8, value.

from headgate_engine.wire.buffer cimport ByteBuffer

cdef class EventStreamDecoder:
    cdef readonly Py_ssize_t max_frame
    cdef ByteBuffer buffer               # from the first frame that is not complete
    cdef bint failed
    cdef object _frame(self, const unsigned char* p, Py_ssize_t total, Py_ssize_t headers)
    cdef dict _headers(self, const unsigned char* p, Py_ssize_t n)
