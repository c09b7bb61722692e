"""Responses that a tap reads; see tapped.pxd."""

from libc.stdint cimport int64_t

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport MessageHead, new_head
from headgate_engine.link.core cimport Deadlines, END_BROKEN, RequestCore
from headgate_engine.link.pipe cimport PASSING, ResponsePipe
from headgate_engine.link.response cimport send_whole
from headgate_engine.link.spanned cimport calls_of
from headgate_engine.link.states cimport E_CALL_GUARDS, E_KEEP_HEAD, E_RESPOND
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.link.client import SPANS
from headgate_engine.plan.step import drive
from headgate_engine.plan.trailers import TRAILERS

cdef enum:
    # Bytes of a stream without words that are kept back. Usual beginnings have some hundred.
    MAX_KEPT_BACK = 65536


cdef ResponsePipe tapped_pipe(ResponseTap tap, RequestCore request, MessageHead head):
    cdef TappedPipe found
    if not tap.begin(request.ctx, head):
        return PASSING
    found = TappedPipe.__new__(TappedPipe)
    found.tap = tap
    found.out = ByteBuffer()
    return found


cdef MessageHead told_behind(RequestCore request, MessageHead trailers):
    """The trailers of a stream, with those that a step has to tell."""
    cdef bytes name, value
    teller = None if request.ctx.dynamic is None else request.ctx.dynamic.get(TRAILERS)
    if teller is None:
        return trailers
    if trailers is None:
        trailers = new_head()
    for name, value in teller.fields(request.ctx):
        trailers.add_field(name, len(name), value, len(value))
    return trailers


cdef class TappedPipe(ResponsePipe):
    cdef bint rewrites(self) noexcept:
        return self.tap.rewrites

    # -- the head ------------------------------------------------------------------------------------------------------
    cdef int head(self, RequestCore request) except -1:
        """Holds the head back: as long as the client has received nothing, another backend can be tried."""
        if self.tap.fault is not None:
            return request.response_failed(self.tap.fault, self.tap.refusal(request.ctx))
        if not self.tap.streaming and not self.tap.whole:
            self._begin(request)
            return 0
        request.move(E_KEEP_HEAD)
        if self.tap.streaming:
            request.await_first_event()
            if request.observer is not None:
                request.observer.head_kept(request, request.destination)
        return 0

    cdef bint _begin(self, RequestCore request) except -1:
        if not self.open(request, not self.tap.streaming):
            return False
        if request.backend.stall_ns:
            request.limits().attempt = monotonic_ns() + request.backend.stall_ns
            request.arm()
        return True

    # -- the body ------------------------------------------------------------------------------------------------------
    cdef int data(self, RequestCore request, const char* p, Py_ssize_t n) except -1:
        cdef Deadlines deadlines = request.deadlines
        if deadlines is not None and deadlines.attempt and not request.awaiting():
            deadlines.attempt = monotonic_ns() + request.backend.stall_ns      # it has not stalled
        if request.observer is not None and self.tap.rewrites:
            request.observer.raw_data(p, n)
        if not self.tap.feed(p, n, self.out):
            self.pass_on(request, p, n)
            return 0
        return self._fed(request)

    cdef int _fed(self, RequestCore request) except -1:
        """Passes the output of the tap on."""
        cdef ResponseTap tap = self.tap
        if tap.waits is not None:
            self._ask(request)
        if request.awaiting():
            if tap.fault is not None and not self._tells_words(request):
                return request.response_failed(tap.fault, tap.refusal(request.ctx))
            if not tap.ready:
                return 0
            if tap.refused and request.may_retry():
                return request.response_failed("the provider's stream began with an error", None)
            if self._keep_back(request):
                return 0
            if not self._begin(request):
                return 0
        if tap.fault is not None:
            # What tells the client is in `out` already.
            request.ctx.error = tap.fault
            request.note_outcome("broken")
            request.drop_attempt()
            return self._last(request)
        if tap.cut:
            request.ctx.error = "a guard ended the stream"
            request.drop_attempt()
            return self._last(request)
        if self.out.length:
            self.pass_on(request, self.out.data, self.out.length)
            self.out.clear()
        return 0

    cdef bint _keep_back(self, RequestCore request) except -1:
        """Whether what came stays here, because it has no words and another backend can be asked."""
        cdef int64_t limit = request.backend.first_words_ns
        cdef ResponseTap tap = self.tap
        if (limit == 0 or self.released or tap.shown or tap.done or tap.cut or tap.fault is not None
                or self.out.length > MAX_KEPT_BACK or not request.may_retry()):
            self.keeping = False
            return False
        if not self.keeping:
            self.keeping = True
            request.limits().attempt = monotonic_ns() + limit
            request.arm()
        return True

    cdef bint keeps_back(self) noexcept:
        return self.keeping

    cdef int _release(self, RequestCore request) except -1:
        """Passes on what was kept back: it has been long enough."""
        self.keeping = False
        self.released = True
        if self._begin(request) and self.out.length:
            self.pass_on(request, self.out.data, self.out.length)
            self.out.clear()
        return 0 if request.client is None else request.client.flush()

    cdef bint _tells_words(self, RequestCore request) noexcept:
        """Whether a stream that broke before its head went out goes to the client as far as it came: nobody else can be
        asked, and there are words.
        """
        return self.tap.spoken and not request.may_retry()

    # -- the end -------------------------------------------------------------------------------------------------------
    cdef int end(self, RequestCore request, MessageHead trailers) except -1:
        self.trailers = trailers
        self.ended = True
        if request.observer is not None:
            request.observer.raw_end()
        return self._end(request)

    cdef int _end(self, RequestCore request) except -1:
        """Ends the response when the backend has sent all of it and no guard is running."""
        cdef ResponseTap tap = self.tap
        if request.asking_guards():
            return 0
        if not self.finished:
            self.finished = True
            tap.finish(request.ctx, self.out)
            if tap.waits is not None:
                return self._ask(request)
        if tap.reply is not None:
            return request.respond(tap.reply)
        if tap.fault is not None:
            request.ctx.error = tap.fault
            request.note_outcome("broken")
            if request.awaiting() and not self._tells_words(request):
                return request.response_failed(tap.fault, tap.refusal(request.ctx))
        if request.awaiting():
            if tap.whole:
                request.disarm()
                request.move(E_RESPOND)
                return send_whole(request, request.ctx.response, self.out.take())
            if not self._begin(request):
                return 0
        if self.out.length and not self.pass_on(request, self.out.data, self.out.length):
            return 0
        return self.close(request, told_behind(request, self.trailers))

    cdef int _last(self, RequestCore request) except -1:
        """Sends the rest of `out` and ends the response."""
        if self.out.length and not self.pass_on(request, self.out.data, self.out.length):
            return 0
        return self.close(request, told_behind(request, None))

    # -- responses that break off --------------------------------------------------------------------------------------
    cdef int broke(self, RequestCore request, str detail) except -1:
        return self._break_off(request, detail) if self.tap.streaming else ResponsePipe.broke(self, request, detail)

    cdef int _break_off(self, RequestCore request, str detail) except -1:
        """Breaks off a stream of which the client has a part, with an error event if its format has one."""
        request.ctx.error = detail
        request.note_outcome("broken")
        request.blame_endpoint()
        request.drop_attempt()
        self.out.clear()
        if self.tap.fail(request.ctx, detail, self.out):
            return self._last(request)
        request.client.flush()
        return request.finish(END_BROKEN)

    cdef int stalled(self, RequestCore request, int64_t now_ns) except -1:
        """Handles a silent provider. Does nothing while it is the client that does not read."""
        cdef Deadlines deadlines = request.deadlines
        if deadlines.attempt == 0:
            return 0
        if self.keeping:
            if deadlines.attempt > now_ns:
                return request.arm()
            return self._release(request)
        if deadlines.attempt > now_ns or request.client.congested():
            deadlines.attempt = max(deadlines.attempt, now_ns + request.backend.stall_ns)
            return request.arm()
        return self._break_off(request, "the provider sends nothing any more")

    cdef bint complete(self, RequestCore request) except -1:
        self.tap.left()
        return self.tap.done and not request.asking_guards()

    # -- guards --------------------------------------------------------------------------------------------------------
    cdef int _ask(self, RequestCore request) except -1:
        """Pauses the response until the guards have answered."""
        if not request.move(E_CALL_GUARDS):
            return 0            # they are being asked already
        request.pause_upstream()
        calls = calls_of(request.ctx)
        token = None if calls is None else SPANS.set(calls)
        try:
            request.ctx.waiting = request.worker.spawn(
                "guards", drive("guards", request.ctx, request, self.tap.waits, None, request.guards_answered))
        finally:
            if token is not None:
                SPANS.reset(token)
        return 0

    cdef int settled(self, RequestCore request, object found) except -1:
        self.tap.settle(found, self.out)
        if not self.ended:
            return self._fed(request)
        if self.tap.waits is not None:
            return self._ask(request)
        return self._end(request)
