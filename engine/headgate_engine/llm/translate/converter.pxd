# The translation of one streamed reply: a decoder of the provider's framing, a reader of its format, and a writer of the
# client's. Events go from the decoder's buffer to the reader without a copy.

from headgate_engine.llm.eventstream cimport EventStreamDecoder
from headgate_engine.llm.translate.readers cimport EventReader
from headgate_engine.llm.translate.writers cimport Writer
from headgate_engine.sse.decode cimport SseDecoder
from headgate_engine.wire.buffer cimport ByteBuffer

cdef class StreamConverter:
    cdef EventReader reader
    cdef Writer writer
    cdef SseDecoder events               # None: the provider sends frames
    cdef EventStreamDecoder frames       # None: the provider sends server-sent events

    # Append the client's bytes to `out`; see feed() and end().
    cdef int feed_into(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1
    cdef int end_into(self, str fault, ByteBuffer out) except -1
    cdef int _feed(self, const char* p, Py_ssize_t n) except -1
    cdef int _end(self, str fault) except -1
    cdef int _take(self, ByteBuffer out) except -1
