"""Responses on their way to the client; see pipe.pxd."""

from libc.stdint cimport int64_t

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.contract cimport SIZE_NONE
from headgate_engine.link.core cimport END_BROKEN, END_CLEAN, RequestCore
from headgate_engine.link.held cimport held_response, HeldResponse
from headgate_engine.link.reasons cimport REPLY_INTERNAL, REPLY_RESPONSE_TOO_LARGE, REPLY_UPSTREAM_PROTOCOL
from headgate_engine.link.response cimport response_size, run_response_steps, send_whole, start_response
from headgate_engine.link.states cimport E_BEGIN, E_RESPOND


cdef class ResponsePipe:
    cdef int head(self, RequestCore request) except -1:
        self.open(request, False)
        return 0

    cdef int data(self, RequestCore request, const char* p, Py_ssize_t n) except -1:
        if request.held is None:
            return request.client.send_body(p, n)
        self.pass_on(request, p, n)
        return 0

    cdef int end(self, RequestCore request, MessageHead trailers) except -1:
        return self.close(request, trailers)

    cdef int broke(self, RequestCore request, str detail) except -1:
        if request.held is not None:
            return request.respond(request.worker.reply(REPLY_UPSTREAM_PROTOCOL))
        # Only a broken connection tells the client that the rest is missing.
        request.client.flush()
        return request.finish(END_BROKEN)

    cdef int stalled(self, RequestCore request, int64_t now_ns) except -1:
        return 0

    cdef bint keeps_back(self) noexcept:
        return False

    cdef int settled(self, RequestCore request, object found) except -1:
        return 0

    cdef bint complete(self, RequestCore request) except -1:
        return False

    # -- what a pipe is made of ----------------------------------------------------------------------------------------
    cdef bint rewrites(self) noexcept:
        """Whether the length of the body may change."""
        return False

    cdef bint open(self, RequestCore request, bint whole) except -1:
        """`whole`: a model's answer that is no stream."""
        cdef HeldResponse held = None
        cdef int64_t length
        request.move(E_BEGIN)
        if request.deadlines is not None:
            request.disarm()
        if request.route.hold is not None or request.backend.hold is not None or request.listener.hold is not None:
            if response_size(request.ctx.head, request.ctx.response, False, &length) != SIZE_NONE:
                held = held_response(request.route, request.backend, request.listener, whole)
            else:
                request.ctx.response_body = b""        # that of an answer without content, for expressions
            if held is not None and held.fits(request.ctx.response.content_length):
                request.held = held
                return True
            if held is not None and held.strict:
                request.respond(request.worker.reply(REPLY_RESPONSE_TOO_LARGE))
                return False
        return self._send_head(request)

    cdef bint _send_head(self, RequestCore request) except -1:
        """Runs the response steps and sends the head."""
        if not run_response_steps(request):
            request.respond(request.worker.reply(REPLY_INTERNAL))
            return False
        start_response(request, request.ctx.response, self.rewrites())
        return request.client is not None        # a filter may have ended the request

    cdef bint pass_on(self, RequestCore request, const char* p, Py_ssize_t n) except -1:
        cdef HeldResponse held = request.held
        cdef Py_ssize_t filled
        if held is not None:
            if held.add(p, n):
                return True
            request.held = None
            if held.strict:
                request.respond(request.worker.reply(REPLY_RESPONSE_TOO_LARGE))
                return False
            if held.prefix:
                filled = held.fill(p, n)
                p, n = p + filled, n - filled
                request.ctx.response_body = held.body.data[:held.body.length]
                request.ctx.response_cut = True
            # What there is goes out, the rest as it comes: steps do not see it.
            if not self._send_head(request):
                return False
            request.client.send_body(held.body.data, held.body.length)
        if request.client is not None:
            request.client.send_body(p, n)
        return request.client is not None

    cdef int close(self, RequestCore request, MessageHead trailers) except -1:
        cdef HeldResponse held = request.held
        if request.client is None:
            return 0
        if held is not None:
            request.ctx.response_bytes = 0       # counted again when it leaves
            request.move(E_RESPOND)
            return send_whole(request, request.ctx.response, held.body.take())
        if request.ctx.status == 204 or request.ctx.status == 304:
            request.ctx.response_bytes = 0       # what the backend sent was discarded
        request.client.end_response(trailers)
        return request.finish(END_CLEAN)


PASSING = ResponsePipe()
