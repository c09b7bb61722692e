"""A request that is under way; see flight.pxd."""

from headgate_engine.context.headers cimport H_CONTENT_TYPE, MessageHead
from headgate_engine.load.ledger cimport LoadLedger
from headgate_engine.load.request cimport JUDGE_RPC, JUDGE_STATUS, JUDGE_STREAM, LoadRequest
from headgate_engine.peek.delta cimport SAYS_MORE, delta_peek
from headgate_engine.peek.json cimport RpcPeek
from headgate_engine.sse.decode cimport SseDecoder
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t
from libc.string cimport memcmp

from headgate_engine.peek.json import PeekError
from headgate_engine.sse.decode import SseError

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    void *memmem(const void *, size_t, const void *, size_t);
    #endif
    """
    void* memmem(const void* haystack, size_t n, const void* needle, size_t m) noexcept nogil

cdef enum:
    MOST_KEPT = 1048576       # bytes of a JSON-RPC response
    EVENT_STREAM = 17

# How streams say that they are over, by format: a text of data, or a name of an event; None: with the end of the body.
cdef dict ENDS = {
    "completions": (b"[DONE]", None), "messages": (None, b"message_stop"), "responses": (None, b"response.completed"),
    "gemini": (None, None), "converse": (None, None),
}


cdef inline bint same(const char* p, Py_ssize_t n, bytes text) noexcept:
    return p != NULL and n == len(text) and memcmp(p, <const char*>text, n) == 0


cdef inline bint holds(const char* p, Py_ssize_t n, bytes text) noexcept:
    return n > 0 and memmem(p, n, <const char*>text, len(text)) != NULL


cdef class Flight:
    def __cinit__(self):
        self.kept = ByteBuffer()

    cdef int begin(self, LoadRequest request, int64_t due_ns, int64_t now_ns) except -1:
        self.due_ns, self.sent_ns = due_ns, now_ns
        self.status = 0
        self.fault = None
        if request is not self.request:
            self.request = request
            self.peek = delta_peek(request.format) if request.format is not None else None
            self.rpc = RpcPeek() if request.judgement == JUDGE_RPC else None
        if request.judgement != JUDGE_STATUS:
            self.events = self.complete = False
            self.first_ns = self.last_ns = 0
            self.kept.clear()
        return 0

    cdef int head(self, MessageHead head) except -1:
        cdef int at
        self.status = head.status
        if self.request.judgement == JUDGE_STATUS or self.status >= 400:
            return 0
        at = head.find_id(H_CONTENT_TYPE, 0)
        self.events = at >= 0 and head.spans[at].value_len >= EVENT_STREAM and memcmp(
            head.data + head.spans[at].value_off, b"text/event-stream", EVENT_STREAM) == 0
        if self.events:
            self.decoder = SseDecoder()
        elif self.request.judgement == JUDGE_STREAM:
            self.fault = "stream: the answer is none"
        return 0

    cdef int data(self, LoadLedger ledger, const char* p, Py_ssize_t n, int64_t now_ns) except -1:
        if self.request.judgement == JUDGE_STATUS or self.status >= 400 or self.fault is not None:
            return 0
        if not self.events:
            if self.kept.length + n > MOST_KEPT:
                self.fault = "rpc: the response is too long"
                return 0
            return self.kept.append(p, n)
        try:
            self.decoder.feed(p, n)
            while self.decoder.next():
                if self.decoder.has_event:
                    self._event(ledger, now_ns)
        except SseError:
            self.fault = "stream: an event is too long"
        return 0

    cdef int _event(self, LoadLedger ledger, int64_t now_ns) except -1:
        cdef SseDecoder decoder = self.decoder
        cdef bytes text, name
        if self.request.judgement == JUDGE_RPC:
            # Notifications may come before the response.
            if holds(decoder.data, decoder.data_len, b'"result"') or holds(decoder.data, decoder.data_len, b'"error"'):
                self.complete = True
                self._response(decoder.data, decoder.data_len)
            return 0
        if self._is_token():
            if self.due_ns >= ledger.since_ns:
                ledger.tokens += 1
                if self.first_ns:
                    ledger.between.note(now_ns - self.last_ns, 1)
            if self.first_ns == 0:
                self.first_ns = now_ns
            self.last_ns = now_ns
            return 0
        text, name = ENDS[self.request.format]
        if text is not None and same(decoder.data, decoder.data_len, text) \
                or name is not None and same(decoder.event, decoder.event_len, name):
            self.complete = True
        elif same(decoder.event, decoder.event_len, b"error") \
                or decoder.data_len > 8 and memcmp(decoder.data, b'{"error"', 8) == 0:
            self.fault = "stream: an error event"
        return 0

    cdef bint _is_token(self) except -1:
        cdef SseDecoder decoder = self.decoder
        if self.peek.look(decoder.data, decoder.data_len) != SAYS_MORE:
            # A delta of "" is the beginning of a message, and no token.
            return self.peek.stop - self.peek.start > 2
        # A chunk that also names the role, or brings the end, may have a piece of text.
        return self.request.format == "completions" and holds(decoder.data, decoder.data_len, b'"content":"') \
            and not holds(decoder.data, decoder.data_len, b'"content":""')

    cdef int _response(self, const char* p, Py_ssize_t n) except -1:
        try:
            self.rpc.scan(p, n)
        except PeekError:
            self.fault = "rpc: the response is no JSON"
            return 0
        if self.rpc.has_error:
            self.fault = "rpc: error"
        elif not self.rpc.has_result:
            self.fault = "rpc: no result"
        elif holds(p, n, b'"isError":true') or holds(p, n, b'"isError": true'):
            # Inside of a text it would have backslashes.
            self.fault = "rpc: the tool failed"
        return 0

    cdef int end(self, LoadLedger ledger, int64_t now_ns) except -1:
        if self.status >= 400:
            return ledger.lost(self.due_ns, now_ns, f"status {self.status}", False)
        if self.fault is None and self.request.judgement == JUDGE_RPC:
            if self.kept.length:
                self._response(self.kept.data, self.kept.length)
            elif not self.complete:
                self.fault = "rpc: no response"
        elif self.fault is None and self.request.judgement == JUDGE_STREAM:
            if not self.complete and ENDS[self.request.format] != (None, None):
                self.fault = "stream: cut off"
            elif self.first_ns == 0:
                self.fault = "stream: no token"
        if self.fault is not None:
            return ledger.lost(self.due_ns, now_ns, self.fault, False)
        if self.first_ns and self.due_ns >= ledger.since_ns and self.request.judgement == JUDGE_STREAM:
            ledger.first_token.note(self.first_ns - self.due_ns, 1)
        return ledger.answered(self.due_ns, now_ns)
