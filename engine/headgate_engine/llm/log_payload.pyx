"""Prompts and answers for the request log; see log_payload.pxd. An answer is kept as the client got it: behind translation and
guards. One that is encoded, or that nothing looks at, is not kept.
"""

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer

import json

cdef enum:
    _MAX_PAYLOAD = 65536

# Bytes of a prompt and of an answer that are kept; a longer one is cut and ends in `...`.
MAX_PAYLOAD = _MAX_PAYLOAD


cdef ResponseTap log_payload_tap(LlmCall call, ResponseTap inner):
    cdef LogPayloadTap tap
    if inner is None or not call.log_payload:
        return inner
    tap = LogPayloadTap.__new__(LogPayloadTap)
    tap.inner = inner
    tap.call = call
    tap.kept = ByteBuffer()
    tap._mirror()
    return tap


cdef bytes payload_json(bytes text):
    if text is None:
        return None
    told = text[:_MAX_PAYLOAD].decode("utf-8", "replace")
    return json.dumps(told + "..." if len(text) > _MAX_PAYLOAD else told, ensure_ascii=False).encode("utf-8", "replace")


cdef class LogPayloadTap(ResponseTap):
    cdef int _mirror(self) except -1:
        """Shows what the inner tap shows."""
        cdef ResponseTap inner = self.inner
        self.rewrites, self.whole, self.streaming = inner.rewrites, inner.whole, inner.streaming
        self.ready, self.refused, self.done, self.cut = inner.ready, inner.refused, inner.done, inner.cut
        self.spoken, self.shown = inner.spoken, inner.shown
        self.fault, self.limit, self.reply, self.waits = inner.fault, inner.limit, inner.reply, inner.waits
        return 0

    cdef int _keep(self, const char* p, Py_ssize_t n) except -1:
        # One byte more tells that there was more.
        n = min(n, _MAX_PAYLOAD + 1 - self.kept.length)
        return 0 if n <= 0 else self.kept.append(p, n)

    cdef int _told(self) except -1:
        if self.kept.length and (self.head.get("content-encoding") or "identity").lower() == "identity":
            self.call.response_payload = self.kept.data[:self.kept.length]
        return 0

    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        cdef bint wanted = self.inner.begin(ctx, head)
        self.head = head
        self.call.response_payload = None
        self._mirror()
        return wanted

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        cdef Py_ssize_t start = out.length
        cdef bint changed = self.inner.feed(p, n, out)
        if changed:
            self._keep(out.data + start, out.length - start)
        else:
            self._keep(p, n)
        self._mirror()
        return changed

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        cdef Py_ssize_t start = out.length
        self.inner.finish(ctx, out)
        self._keep(out.data + start, out.length - start)
        self._mirror()
        return self._told()

    cdef bint fail(self, RequestContext ctx, str detail, ByteBuffer out) except -1:
        cdef Py_ssize_t start = out.length
        cdef bint told = self.inner.fail(ctx, detail, out)
        self._keep(out.data + start, out.length - start)
        self._mirror()
        self._told()
        return told

    cdef Reply refusal(self, RequestContext ctx):
        return self.inner.refusal(ctx)

    cdef int left(self) except -1:
        self._told()
        return self.inner.left()

    cdef int settle(self, object found, ByteBuffer out) except -1:
        cdef Py_ssize_t start = out.length
        self.inner.settle(found, out)
        self._keep(out.data + start, out.length - start)
        self._mirror()
        return self._told()
