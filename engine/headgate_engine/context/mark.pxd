# A snapshot of a head that can be restored. Edits append bytes and spans and set flags, so a copy of the spans and the
# start line is enough.

from headgate_engine.context.headers cimport HeaderSpan, MessageHead

from libc.stdint cimport uint32_t

cdef class HeadMark:
    cdef HeaderSpan* spans
    cdef int count
    cdef uint32_t method_off, method_len, flags
    cdef uint32_t target_off, target_len, path_len, authority_off, authority_len
    cdef int restore(self, MessageHead head) except -1

cdef HeadMark mark_head(MessageHead head)
