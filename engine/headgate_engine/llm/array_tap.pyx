"""Streams as JSON arrays; see array_tap.pxd.

Source: https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent, which sends such an array where
`alt=sse` is missing. Each entry goes out when its event has come.
"""

from headgate_engine.context.headers cimport H_CONTENT_LENGTH, H_CONTENT_TYPE, MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.llm.outer_tap cimport OuterTap
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.sse.decode cimport SseDecoder
from headgate_engine.wire.buffer cimport ByteBuffer


cdef ArrayTap array_tap(ResponseTap inner):
    cdef ArrayTap tap = ArrayTap.__new__(ArrayTap)
    tap.inner = inner
    tap.piece = ByteBuffer()
    return tap


cdef class ArrayTap(OuterTap):
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        if not self.inner.begin(ctx, head):
            return False
        if self.inner.streaming and 200 <= head.status < 300:
            self.events = SseDecoder()
            head.drop_id(H_CONTENT_TYPE)
            head.drop_id(H_CONTENT_LENGTH)
            head.add_field(b"content-type", 12, b"application/json", 16)
        self._mirror()
        return True

    cdef int _mirror(self) except -1:
        OuterTap._mirror(self)
        self.limit = self.inner.limit
        if self.events is not None:
            self.rewrites = True
        return 0

    cdef int _through(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        cdef SseDecoder events = self.events
        events.feed(p, n)
        while events.next():
            if not events.has_event or self.closed:
                continue
            if self.opened:
                out.append(b",\r\n", 3)
            else:
                out.append_byte(91)
            self.opened = True
            out.append(events.data, events.data_len)
        return 0

    cdef int _close(self, ByteBuffer out) except -1:
        if not self.closed:
            self.closed = True
            if not self.opened:
                out.append_byte(91)
            out.append_byte(93)
        return 0

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        cdef bint changed
        if self.events is None:
            changed = self.inner.feed(p, n, out)
            self._mirror()
            return changed
        if self.inner.feed(p, n, self.piece):
            self._through(self.piece.data, self.piece.length, out)
            self.piece.clear()
        else:
            self._through(p, n, out)
        self._mirror()
        if self.done or self.cut or self.fault is not None:
            self._close(out)
        return True

    cdef int settle(self, object found, ByteBuffer out) except -1:
        if self.events is None:
            self.inner.settle(found, out)
            self._mirror()
            return 0
        self.inner.settle(found, self.piece)
        self._through(self.piece.data, self.piece.length, out)
        self.piece.clear()
        self._mirror()
        if self.done or self.cut or self.fault is not None:
            self._close(out)
        return 0

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        if self.events is None:
            self.inner.finish(ctx, out)
            self._mirror()
            return 0
        self.inner.finish(ctx, self.piece)
        self._through(self.piece.data, self.piece.length, out)
        self.piece.clear()
        self._mirror()
        return self._close(out) if self.waits is None else 0

    cdef bint fail(self, RequestContext ctx, str detail, ByteBuffer out) except -1:
        cdef bint told
        if self.events is None:
            return self.inner.fail(ctx, detail, out)
        told = self.inner.fail(ctx, detail, self.piece)
        if told:
            self._through(self.piece.data, self.piece.length, out)
            self._close(out)
        self.piece.clear()
        self._mirror()
        return told
