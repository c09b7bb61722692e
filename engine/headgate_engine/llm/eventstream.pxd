# Amazon event stream (application/vnd.amazon.eventstream), incremental: bytes may be cut anywhere.
#
# Frame: total length u32, length of the headers u32, CRC-32 of these eight bytes u32, headers, payload, CRC-32 of
# everything in front of it u32; all big endian. Header: length of the name u8, name, type u8, value.

from headgate_engine.wire.buffer cimport ByteBuffer

cdef enum FrameKind:
    FRAME_EVENT = 0
    FRAME_EXCEPTION            # the provider reports an error in place of an event
    FRAME_ERROR                # the connection has failed; there is no payload
    FRAME_OTHER                # a message type that is unknown

cdef struct FrameText:
    # A header's value in the frame. p NULL: the frame has no such header.
    const char* p
    Py_ssize_t n

cdef class EventStreamDecoder:
    cdef readonly Py_ssize_t max_frame
    cdef ByteBuffer buffer
    cdef Py_ssize_t at                   # where the next frame begins in `buffer`
    cdef bytes made                      # the payload of a FRAME_ERROR
    cdef bint failed

    # The frame that next() has found. The pointers are valid until the next call of feed() or next().
    cdef int kind                        # FrameKind
    cdef FrameText message_type          # NULL: `event`
    cdef FrameText event                 # `:event-type`, `:exception-type` or `:error-code`; NULL: none
    cdef const char* raw
    cdef Py_ssize_t raw_len
    cdef const char* data                # the payload
    cdef Py_ssize_t data_len

    cdef int feed(self, const char* p, Py_ssize_t n) except -1
    # Whether there is another whole frame. Raises EventStreamError, now and at every later call.
    cdef bint next(self) except -1
    cdef bint is_event(self, const char* name, Py_ssize_t n) noexcept
    # Number of bytes behind the last frame.
    cdef Py_ssize_t left(self) noexcept
    cdef int _frame(self, const unsigned char* p, Py_ssize_t total, Py_ssize_t headers) except -1
    cdef int _error(self, FrameText message) except -1

# Appends a frame. headers: as header_block() makes them; p: the payload, which must not lie in `out`.
cdef int append_frame(ByteBuffer out, bytes headers, const char* p, Py_ssize_t n) except -1
# A frame that was read, with another payload.
cdef bytes reframed(bytes raw, bytes payload)
