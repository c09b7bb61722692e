# Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html), incremental: bytes may be split
# anywhere.
#
# A stream is split into blocks: an event with everything before it and its blank line, or a comment outside an event,
# or a line break outside an event. All blocks in order are the stream, byte for byte, so that a filter can pass them on
# or leave them out.

from libc.stdint cimport int64_t

from headgate_engine.wire.buffer cimport ByteBuffer

cdef struct Span:
    Py_ssize_t at              # from the block's start
    Py_ssize_t length          # -1: absent

cdef class SseDecoder:
    cdef readonly Py_ssize_t max_event
    cdef ByteBuffer buffer     # the bytes after the last block
    cdef ByteBuffer joined     # data of several lines
    cdef Py_ssize_t start      # where the block being read begins
    cdef Py_ssize_t line       # where the line being read begins
    cdef Py_ssize_t searched   # line..searched has neither CR nor LF
    cdef Py_ssize_t lf         # first LF at or behind `line`; the buffer's length: there is none; below `line`: unknown
    cdef readonly int64_t looked_at      # bytes that the search for line ends has read, repeated reads included
    cdef bint first_line, after_cr, in_event, complete, failed
    cdef int data_lines
    cdef Span event_span, id_span, data_span
    cdef bytes last_id

    # The block that next() has found. The pointers are valid until the next call of feed() or next().
    cdef bint has_event        # the block dispatches an event
    cdef const char* raw
    cdef Py_ssize_t raw_len
    cdef const char* data
    cdef Py_ssize_t data_len
    cdef const char* event     # NULL: not named, so it is `message`
    cdef Py_ssize_t event_len
    cdef const char* id        # NULL: this block sets none
    cdef Py_ssize_t id_len
    cdef int64_t retry         # ms, -1: none

    cdef int feed(self, const char* p, Py_ssize_t n) except -1
    # Returns whether there is another block. Raises SseError if it is longer than max_event.
    cdef bint next(self) except -1
    cdef void _forget(self) noexcept
    cdef Py_ssize_t _line_end(self) noexcept
    cdef int _field(self, Py_ssize_t at, Py_ssize_t stop) except -1
    cdef int _add_data(self, Py_ssize_t at, Py_ssize_t stop) except -1
    cdef int _finish(self, Py_ssize_t content_end, Py_ssize_t next_line) except -1
    cdef int _check(self, Py_ssize_t size) except -1
