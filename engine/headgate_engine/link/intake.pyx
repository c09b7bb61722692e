"""Request bodies on their way to the backend; see intake.pxd."""

from headgate_engine.context.headers cimport HEAD_CHUNKED, HEAD_EXPECT_CONTINUE, MessageHead
from headgate_engine.context.request cimport BODY_PREFIX, BODY_WHOLE, Reply, RequestContext
from headgate_engine.link.collector cimport BodyCollector, fill_body, take_body
from headgate_engine.link.core cimport RequestCore
from headgate_engine.link.reasons cimport REPLY_BODY_TOO_LARGE
from headgate_engine.link.states cimport E_WANT_BODY, S_BACKEND_BODY, S_STEP_BODY, S_TAKEN


cdef BodyCollector collector_of(RequestCore request):
    if request.collector is None:
        request.collector = BodyCollector.__new__(BodyCollector)
    return request.collector


cdef int collect(RequestCore request, const char* p, Py_ssize_t n) except -1:
    cdef BodyCollector collector
    if request.state >= S_TAKEN or request.ctx.body_state == BODY_WHOLE:
        return 0                             # answered, or a step has put another body in its place
    collector = collector_of(request)
    collector.waiting.append(p, n)
    if request.state == S_STEP_BODY:
        return request.body_came() if fill_body(request.ctx, collector, False) else 0
    if request.state == S_BACKEND_BODY:
        return too_long(request) if collector.waiting.length > request.backend.max_body else 0
    return request.client.pause_request()    # what this read brought is kept, no more is read


cdef int body_ended(RequestCore request) except -1:
    if request.state == S_STEP_BODY:
        return request.body_came() if fill_body(request.ctx, request.collector, True) else 0
    if request.state == S_BACKEND_BODY:
        return complete(request)
    # Reading stopped for the body that waits. Nothing more of it can come: a client that leaves is to be seen.
    return 0 if request.collector is None else request.client.resume_request()


cdef bint answered_early(RequestCore request) noexcept:
    cdef MessageHead head
    if request.client is None:
        return False
    head = request.ctx.head
    return not request.request_done and request.tunnel is None and (
        head.content_length > 0 or head.flags & HEAD_CHUNKED != 0) and request.client.flush_follows()


cdef bint await_body(RequestCore request) except -1:
    cdef RequestContext ctx = request.ctx
    if ctx.body_state == BODY_WHOLE or ctx.body_state == BODY_PREFIX and len(ctx.body) >= ctx.body_limit:
        raise RuntimeError("a step waits for a body that it has")
    if fill_body(ctx, request.collector, request.request_done):
        return True
    request.move(E_WANT_BODY)
    ask_for_body(request)
    return False


cdef int await_whole_body(RequestCore request) except -1:
    if request.ctx.body_state != BODY_WHOLE and request.ctx.head.content_length > request.backend.max_body:
        return too_long(request)
    if request.request_done or request.ctx.body_state == BODY_WHOLE:
        return complete(request)
    return ask_for_body(request)


cdef int ask_for_body(RequestCore request) except -1:
    request.client.resume_request()
    return request.client.send_continue() if request.ctx.head.flags & HEAD_EXPECT_CONTINUE else 0


cdef int complete(RequestCore request) except -1:
    cdef RequestCore held = request          # whoever answers may end it
    if request.ctx.body_state != BODY_WHOLE:
        take_body(request.ctx, request.collector)
    return too_long(request) if len(request.ctx.body) > request.backend.max_body else held.body_complete()


cdef int too_long(RequestCore request) except -1:
    """Refuses a body that cannot be read whole."""
    cdef Reply reply = request.destination.too_long
    return request.respond(request.worker.reply(REPLY_BODY_TOO_LARGE) if reply is None else reply)
