"""Records of the request log: one JSON array per finished request, and the pipe to which they are written.

A record is `[completed_us, duration_us, status, provider, requested model, response model, input tokens, output tokens,
cost in picodollars, error, traceparent, prompt, answer, attributes]` and a line feed: strings or null, numbers or -1.
The attributes are the JSON access-log line. The order is that of FIELDS; headgate.telemetry.requests.records reads it.

The reader of the pipe may be slow: records that do not fit into the pipe wait here, up to LIMIT bytes; further ones are
dropped and counted. Requests never wait.
"""

from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t

from headgate_engine.clock cimport wall_ns
from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.context.trace_context cimport SPAN_ID, TRACE_ID, TraceContext
from headgate_engine.llm.attempt cimport LlmAttempt, LlmCall
from headgate_engine.llm.log_payload cimport payload_json
from headgate_engine.log.access cimport AccessLogFormat
from headgate_engine.log.text cimport append_json_value
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.scan cimport same_lower

import asyncio
import os

cdef extern from "<unistd.h>" nogil:
    ssize_t write(int fd, const void* data, size_t n)

FIELDS = ("completed_us", "duration_us", "status", "provider", "request_model", "response_model", "input_tokens",
          "output_tokens", "cost_picos", "error", "traceparent", "prompt", "completion",
          "attributes")

cdef enum:
    # Capacity of an empty pipe with the default size: pipe(7).
    CHUNK = 65536
    LIMIT = 4194304

# Longest time that a record waits for others, in seconds.
DELAY = 0.05
# At the end of a worker: seconds between two writes, and most writes.
END_PAUSE = 0.01
END_TRIES = 100


cdef class RecordFormat:
    def __init__(self, AccessLogFormat line not None, bint payload=False):
        if not line.as_json:
            raise ValueError("attributes are written as JSON")
        self.line = line
        self.payload = payload

    cdef int write(self, ByteBuffer out, RequestContext ctx, int64_t now_ns) except -1:
        cdef Py_ssize_t start = out.length
        cdef Py_ssize_t head
        try:
            self._head(out, ctx, now_ns)
            head = out.length
            self.line.write_line(out, ctx, now_ns)
            if out.length == head:
                out.length = start          # the filter excludes it
                return 0
            # Replace the line feed at the end of the line.
            out.data[out.length - 1] = 93
            return out.append_byte(10)
        except BaseException:
            out.length = start
            raise

    cdef int _head(self, ByteBuffer out, RequestContext ctx, int64_t now_ns) except -1:
        cdef TokenUsage usage = ctx.usage
        cdef LlmCall call = <LlmCall>ctx.llm
        cdef bytes model = None
        cdef int64_t cost = -1
        if call is not None:
            if call.cost is not None:
                cost = call.cost.total
            if call.attempts is not None:
                answered = (<LlmAttempt>call.attempts[len(call.attempts) - 1]).response_model
                if answered is not None:
                    model = answered.encode("utf-8", "replace")
        out.append_byte(91)
        _number(out, now_ns // 1000)
        _number(out, max(ctx.finished_ns - ctx.started_ns, 0) // 1000)
        _number(out, ctx.status)
        _text(out, ctx.provider)
        _text(out, ctx.requested_model)
        _text(out, model)
        _number(out, -1 if usage is None else usage.input_tokens)
        _number(out, -1 if usage is None else usage.output_tokens)
        _number(out, cost)
        _text(out, None if ctx.error is None else ctx.error.encode("utf-8", "replace"))
        _parent(out, ctx)
        if call is None or not self.payload:
            return out.append(b"null,null,", 10)
        _kept(out, call.sent)
        return _kept(out, call.response_payload)


cdef int _number(ByteBuffer out, int64_t value) except -1:
    if value < 0:
        return out.append(b"-1,", 3)
    out.append_uint(<unsigned long long>value)
    return out.append_byte(44)


cdef int _text(ByteBuffer out, bytes value) except -1:
    if value is None:
        return out.append(b"null,", 5)
    append_json_value(out, value, len(value))
    return out.append_byte(44)


cdef int _kept(ByteBuffer out, bytes value) except -1:
    cdef bytes told = payload_json(value)
    if told is None:
        return out.append(b"null,", 5)
    out.append(told, len(told))
    return out.append_byte(44)


cdef int _parent(ByteBuffer out, RequestContext ctx) except -1:
    """Write the place of the request in its trace, else the client's field (https://www.w3.org/TR/trace-context/)."""
    cdef MessageHead head = ctx.head
    cdef TraceContext trace = ctx.trace_context
    cdef int i
    if trace is not None:
        out.append(b'"00-', 4)
        out.append(trace.trace_id, TRACE_ID)
        out.append_byte(45)
        out.append(trace.span_id, SPAN_ID)
        return out.append(b'-01",' if trace.sampled else b'-00",', 5)
    for i in range(head.count):
        # Field names are case-insensitive (RFC 9110 section 5.1).
        if head.spans[i].name_len == 11 and same_lower(head.data + head.spans[i].name_off, b"traceparent", 11):
            append_json_value(out, head.data + head.spans[i].value_off, min(head.spans[i].value_len, 128))
            return out.append_byte(44)
    return out.append(b"null,", 5)


cdef class RecordSink:
    """The writing end of a pipe to the process that stores records. When it is full, records are dropped and counted.

    fd: becomes non-blocking; the sink owns and closes it.
    """

    def __cinit__(self):
        self.fd = -1

    def __init__(self, loop, int fd, dropped=None):
        os.set_blocking(fd, False)
        self.fd = fd
        self.loop = loop
        self.dropped = dropped
        self.waiting = ByteBuffer()

    cdef int put(self, RequestContext ctx, RecordFormat form) except -1:
        cdef Py_ssize_t before = self.waiting.length
        if self.fd < 0 or before >= LIMIT:
            if form.line.fields is None or form.line.fields.wanted(ctx):
                self._lost(1)
            return 0
        form.write(self.waiting, ctx, wall_ns())
        if self.waiting.length == before:
            return 0
        if self.waiting.length >= CHUNK and before < CHUNK:
            self.send()
        if self.waiting.length and self.handle is None:
            self.handle = self.loop.call_later(DELAY, self._due)
        return 0

    def _due(self):
        self.handle = None
        if not self.send() and self.fd >= 0:
            self.handle = self.loop.call_later(DELAY, self._due)

    cdef bint send(self) except -1:
        cdef ssize_t sent
        while self.waiting.length and self.fd >= 0:
            sent = write(self.fd, self.waiting.data, min(self.waiting.length, CHUNK))
            if sent >= 0:
                self.waiting.consume(sent)
            elif errno == EAGAIN:
                return False
            elif errno != EINTR:
                # The pipe has no reader any more.
                self._lost(_lines(self.waiting))
                self.waiting.release()
                self._close()
        return True

    def _lost(self, Py_ssize_t n):
        if self.dropped is not None and n:
            self.dropped.add(n)

    def _close(self):
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    async def aclose(self):
        """Write the waiting records, for at most a second, and close the pipe."""
        if self.handle is not None:
            self.handle.cancel()
            self.handle = None
        for _ in range(END_TRIES):
            if self.send():
                break
            await asyncio.sleep(END_PAUSE)
        self._lost(_lines(self.waiting))
        self.waiting.release()
        self._close()


cdef Py_ssize_t _lines(ByteBuffer text) noexcept:
    cdef Py_ssize_t i, found = 0
    for i in range(text.length):
        if text.data[i] == 10:
            found += 1
    return found
