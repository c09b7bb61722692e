"""Taps around others; see outer_tap.pxd."""

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer


cdef class OuterTap(ResponseTap):
    cdef int _mirror(self) except -1:
        cdef ResponseTap inner = self.inner
        self.rewrites, self.whole, self.streaming = inner.rewrites, inner.whole, inner.streaming
        self.ready, self.refused, self.done, self.cut = inner.ready, inner.refused, inner.done, inner.cut
        self.fault, self.reply, self.waits = inner.fault, inner.reply, inner.waits
        self.spoken, self.shown = inner.spoken, inner.shown
        return 0

    cdef bint fail(self, RequestContext ctx, str detail, ByteBuffer out) except -1:
        cdef bint told = self.inner.fail(ctx, detail, out)
        self._mirror()
        return told

    cdef Reply refusal(self, RequestContext ctx):
        return self.inner.refusal(ctx)

    cdef int left(self) except -1:
        return self.inner.left()
