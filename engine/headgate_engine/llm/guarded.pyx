"""Guarded answers; see guarded.pxd. What cannot be read is not passed on: 503, or the end of the stream."""

from headgate_engine.context.headers cimport H_CONTENT_ENCODING, H_CONTENT_LENGTH, MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.llm.answer_body cimport answer_body, too_long
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.capture_tap cimport capture_tap
from headgate_engine.llm.log_payload cimport log_payload_tap
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.coding cimport coding_of, decoded

from headgate_engine.wire.coding import CodingError

ENCODED = "the provider's answer is encoded in a way that guards cannot read"


cdef ResponseTap guard_tap(LlmCall call, ResponseTap inner, Py_ssize_t limit):
    return inner if call is None else log_payload_tap(call, guarded(call, inner, limit))


cdef ResponseTap guarded(LlmCall call, ResponseTap inner, Py_ssize_t limit):
    cdef GuardTap tap
    if call.guards is None or not call.guards.answers(call.format):
        return capture_tap(call, inner, limit)
    tap = GuardTap.__new__(GuardTap)
    tap.inner = inner
    tap.call = call.guards
    tap.format = call.format
    tap.limit = limit
    tap.piece = ByteBuffer()
    tap.kept = answer_body(limit)
    return capture_tap(call, tap, limit)


cdef class GuardTap(ResponseTap):
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        cdef bint good = 200 <= head.status < 300
        kind = (head.get("content-type") or "").split(";")[0].strip().lower()
        self.head = head
        if self.inner is not None and not self.inner.begin(ctx, head):
            self.inner = None
        streaming = self.inner.streaming if self.inner is not None else kind == "text/event-stream"
        if good and streaming:
            self.stream = self.call.stream(self.format, head.items())
        self.passive = not good or streaming and self.stream is None
        if self.passive:
            self._mirror()
            return self.inner is not None
        self.rewrites = True
        if self.stream is None:
            self.whole = True
            replaced = self.inner is not None and self.inner.whole
            self.fault = self.inner.fault if replaced else too_long(head.content_length, self.limit)
            return True
        self.streaming = True
        if self.inner is None:
            self.fault = ENCODED           # an event stream that the inner tap would not read
        else:
            self.fault = self.inner.fault
        return True

    cdef int _mirror(self) except -1:
        """Shows what the inner tap shows."""
        if self.inner is None:
            return 0
        self.ready, self.refused, self.done = self.inner.ready, self.inner.refused, self.inner.done
        self.spoken, self.shown = self.inner.spoken, self.inner.shown
        if self.passive:
            self.rewrites, self.whole, self.streaming = self.inner.rewrites, self.inner.whole, self.inner.streaming
        # A stream that waits for a guard breaks only when what was before the break has been judged.
        if self.waits is None and not self.cut:
            self.fault = self.inner.fault
        return 0

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        cdef bint changed
        if self.passive:
            changed = self.inner.feed(p, n, out)
            self._mirror()
            return changed
        changed = self.inner is not None and self.inner.feed(p, n, self.piece)
        if self.whole:
            if self.inner is not None and self.inner.whole:
                self.fault = self.inner.fault
                return True
            if self.fault is None:
                self.fault = self.kept.keep(p, n)
            self.piece.clear()
            return True
        self._through(self.piece.take() if changed else p[:n], out)
        if self.inner.fault is not None:
            # Its format's error event is the last thing that was fed.
            self._close(out)
        self._mirror()
        return True

    cdef int _through(self, bytes data, ByteBuffer out) except -1:
        if self.waits is not None:
            self.kept.append(data, len(data))
        elif data and not self.cut:
            self._took(self.stream.feed(data), out)
        return 0

    cdef int _took(self, object found, ByteBuffer out) except -1:
        if not isinstance(found, bytes):
            self.waits = found
            return 0
        out.append(<bytes>found, len(<bytes>found))
        self.cut = self.stream.blocked
        return 0

    cdef int _close(self, ByteBuffer out) except -1:
        self.ended = True
        if self.waits is None and not self.closed and not self.cut:
            self.closed = True
            self._took(self.stream.end(), out)
        return 0

    cdef int settle(self, object found, ByteBuffer out) except -1:
        self.waits = None
        if self.inner is not None and self.inner.waits is not None:
            return self._translated(found, out)
        if self.whole:
            self._answer(found, out)
            return 0
        self._took(found, out)
        if self.kept.length and not self.cut:
            self._through(self.kept.take(), out)
        if self.ended:
            self._close(out)
        self._mirror()
        return 0

    cdef int _translated(self, object found, ByteBuffer out) except -1:
        """The inner tap has what it waited for: a whole answer in the client's format, which is judged now."""
        self.inner.settle(found, out if self.passive else self.piece)
        self.waits = self.inner.waits
        if not self.passive and self.waits is None:
            self._whole(out)
        return 0

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        if self.passive:
            self.inner.finish(ctx, out)
            self._mirror()
            self.waits = self.inner.waits
            return 0
        if self.inner is not None:
            self.inner.finish(ctx, self.piece)
            if self.inner.waits is not None:
                self.waits = self.inner.waits
                return 0
        if self.whole:
            self._whole(out)
            return 0
        self._through(self.piece.take(), out)
        self._close(out)
        self._mirror()
        return 0

    cdef bint fail(self, RequestContext ctx, str detail, ByteBuffer out) except -1:
        if self.passive:
            return self.inner.fail(ctx, detail, out)
        # What waits was not judged, and never will be.
        self.waits = None
        return self.streaming and not self.cut and self.inner.fail(ctx, detail, out)

    cdef Reply refusal(self, RequestContext ctx):
        if self.whole and self.fault is not None and (self.inner is None or not self.inner.whole):
            return Reply(502, self.fault.encode(), (), "UpstreamFailure")        # too long to be judged
        return None if self.inner is None else self.inner.refusal(ctx)

    cdef int left(self) except -1:
        return 0 if self.inner is None else self.inner.left()

    def _whole(self, ByteBuffer out):
        cdef bytes body
        if self.inner is not None and self.inner.whole:
            body = self.piece.take()
            if not 200 <= self.head.status < 300:
                out.append(body, len(body))          # it could not be told in the client's format
                return
        else:
            body = self._body()
            if body is None:
                self.reply = self.call.cannot_tell(ENCODED)
                return
        found = self.call.response(body, self.format, self.head.items())
        if isinstance(found, (bytes, Reply)):
            self._answer(found, out)
        else:
            self.waits = found

    cdef bytes _body(self):
        """The provider's body as it is read, None when it cannot be."""
        body = self.kept.take()
        coding = coding_of(self.head.get("content-encoding"))
        if coding is None:
            return body
        try:
            body = decoded(coding, body, self.limit) if coding else None
        except CodingError:
            return None
        if body is None:
            return None
        self.head.drop_id(H_CONTENT_ENCODING)
        return body

    def _answer(self, found, ByteBuffer out):
        if isinstance(found, Reply):
            self.reply = found
            return
        self.head.drop_id(H_CONTENT_LENGTH)
        out.append(<bytes>found, len(<bytes>found))
