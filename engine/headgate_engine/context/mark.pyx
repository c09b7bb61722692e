"""Snapshots of a request head, for several attempts of the same request."""

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from headgate_engine.context.headers cimport HeaderSpan, MessageHead


cdef class HeadMark:
    """The parts of a head that restore() resets: fields, method, target and authority."""

    def __dealloc__(self):
        free(self.spans)

    cdef int restore(self, MessageHead head) except -1:
        memcpy(head.spans, self.spans, self.count * sizeof(HeaderSpan))
        head.count = self.count
        head.method_off = self.method_off
        head.method_len = self.method_len
        head.flags = self.flags
        head.target_off = self.target_off
        head.target_len = self.target_len
        head.path_len = self.path_len
        head.authority_off = self.authority_off
        head.authority_len = self.authority_len
        return 0

    def put_back(self, MessageHead head):
        """Python interface of restore(), for tests."""
        self.restore(head)


cdef HeadMark mark_head(MessageHead head):
    cdef HeadMark mark = HeadMark.__new__(HeadMark)
    mark.spans = <HeaderSpan*>malloc((head.count or 1) * sizeof(HeaderSpan))
    if mark.spans == NULL:
        raise MemoryError()
    memcpy(mark.spans, head.spans, head.count * sizeof(HeaderSpan))
    mark.count = head.count
    mark.method_off = head.method_off
    mark.method_len = head.method_len
    mark.flags = head.flags
    mark.target_off = head.target_off
    mark.target_len = head.target_len
    mark.path_len = head.path_len
    mark.authority_off = head.authority_off
    mark.authority_len = head.authority_len
    return mark


def mark(MessageHead head):
    """Python interface of mark_head(), for tests."""
    return mark_head(head)
