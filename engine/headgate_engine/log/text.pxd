# Values of log lines, escaped so that no input of a peer can begin a new line or control a terminal.

from libc.stdint cimport int32_t, uint8_t

from headgate_engine.wire.buffer cimport ByteBuffer

# Returns the length of the UTF-8 character at p (n > 0) and sets its code point; for invalid bytes their length and -1.
cdef Py_ssize_t next_character(const uint8_t* p, Py_ssize_t n, int32_t* code) noexcept nogil
# Append a value: text bare or quoted, JSON as a string. Long values are cut to MAX_VALUE bytes and end in `...`.
cdef int append_text_value(ByteBuffer out, const char* p, Py_ssize_t n) except -1
cdef int append_json_value(ByteBuffer out, const char* p, Py_ssize_t n) except -1
