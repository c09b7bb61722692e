"""Request bodies that wait; see collector.pxd."""

cimport cython

from headgate_engine.context.request cimport BODY_PREFIX, BODY_WHOLE, RequestContext
from headgate_engine.wire.buffer cimport ByteBuffer


@cython.freelist(16)
cdef class BodyCollector:
    def __cinit__(self):
        self.waiting = ByteBuffer()

    cdef int put_back(self, ByteBuffer taken) except -1:
        if self.waiting.length:
            taken.append(self.waiting.data, self.waiting.length)
        self.waiting = taken
        return 0


cdef bint fill_body(RequestContext ctx, BodyCollector collector, bint complete) except -1:
    if collector is not None and collector.waiting.length > ctx.body_limit:
        ctx.body = collector.waiting.data[:ctx.body_limit]
        ctx.body_state = BODY_PREFIX
        return True
    if not complete:
        return False
    take_body(ctx, collector)
    return True


cdef int take_body(RequestContext ctx, BodyCollector collector) except -1:
    ctx.body = b"" if collector is None else collector.waiting.take()
    ctx.body_state = BODY_WHOLE
    return 0
