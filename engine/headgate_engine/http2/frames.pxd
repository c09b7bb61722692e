# Frames of HTTP/2 (RFC 9113 sections 4 and 6): a reader that takes bytes in any pieces, and writers.
#
# feed() lends bytes; the caller then calls next() until it returns False, and must not change the bytes before. What DATA
# carries is given out where it lies, in as many pieces as it comes in; so is a whole header block. Only other frames that are
# cut, and blocks in several frames, are copied.

from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport uint8_t, uint32_t

cdef class Http2FrameReader:
    cdef uint32_t max_frame          # our SETTINGS_MAX_FRAME_SIZE
    cdef uint32_t max_block          # bytes of a header block in all its frames
    cdef int max_continuations
    cdef int preface_left            # bytes of the client's preface that are still to come
    # -- the frame that next() has returned ---------------------------------------------------------------------------
    cdef int kind, flags             # padding and priority are removed: their flags may stand, their bytes do not
    cdef uint32_t stream
    cdef uint32_t length             # of the payload as the frame says it: what flow control counts
    cdef const char* data
    cdef Py_ssize_t size
    cdef bint first, last            # of the pieces of DATA; both for other frames
    # -- input ---------------------------------------------------------------------------------------------------------
    cdef const char* lent
    cdef Py_ssize_t lent_len, lent_pos
    cdef uint8_t[9] header
    cdef int header_len              # bytes of the header that have come
    cdef bint in_payload
    cdef bint begun                  # the frame's first piece has been given out, or its padding is known
    cdef uint32_t left, padding      # of the payload that is to come, without and with what is only padding
    cdef ByteBuffer pending          # a payload that is cut; None if none is
    cdef ByteBuffer block            # a header block in several frames; None between them
    cdef int block_flags, continuations
    cdef uint32_t expecting          # the stream whose CONTINUATION must come next; 0: none
    cdef bint block_done             # `block` has been given out

    cdef int feed(self, const char* p, Py_ssize_t n) except -1
    # True: a frame, or a piece of DATA. False: all bytes are used up. Raises ConnectionFault, and StreamFault for what concerns
    # one stream; the frame is passed over then.
    cdef bint next(self) except -1
    cdef int _preface(self) except -1
    cdef bint _begin(self) except -1
    cdef int _check(self) except -1
    cdef bint _data(self) except -1
    cdef bint _whole(self) except -1
    cdef bint _headers(self) except -1
    cdef bint _continuation(self) except -1
    cdef int _skip(self) except -1
    cdef int _end(self) noexcept

cdef uint32_t uint32_at(const char* p) noexcept nogil
cdef int put_header(ByteBuffer out, uint32_t length, int kind, int flags, uint32_t stream) except -1
# Leaves room for a frame's header; the block is appended behind it, and end_headers() makes frames of it.
cdef Py_ssize_t begin_headers(ByteBuffer out) except -1
cdef int end_headers(ByteBuffer out, Py_ssize_t at, uint32_t stream, bint end_stream, uint32_t max_frame) except -1
cdef int put_data(ByteBuffer out, uint32_t stream, const char* p, Py_ssize_t n, bint end_stream) except -1
cdef int put_reset(ByteBuffer out, uint32_t stream, uint32_t code) except -1
cdef int put_window_update(ByteBuffer out, uint32_t stream, uint32_t increment) except -1
cdef int put_ping(ByteBuffer out, const char* eight, bint ack) except -1
cdef int put_goaway(ByteBuffer out, uint32_t last, uint32_t code, bytes detail) except -1
# `values`: ((setting, value), ...); None acknowledges the peer's.
cdef int put_settings(ByteBuffer out, tuple values) except -1
