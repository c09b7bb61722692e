"""Answers that backends send by themselves; see own_answer.pxd."""

from headgate_engine.context.headers cimport HEAD_IS_HEAD, MessageHead
from headgate_engine.link.core cimport END_CLEAN, RequestCore
from headgate_engine.link.response cimport head_of, run_response_steps, send_whole, start_response
from headgate_engine.link.states cimport E_BEGIN, E_RESPOND, S_RESPONDING, S_TAKEN


cdef int send_own_whole(RequestCore request, int status, object headers, bytes body, str reason) except -1:
    begin(request, status)
    request.ctx.reason = reason
    request.move(E_RESPOND)
    return send_whole(request, head_of(status, headers), body)


cdef int start_own(RequestCore request, int status, object headers) except -1:
    cdef MessageHead head = head_of(status, headers)
    begin(request, status)
    request.ctx.response = head
    request.disarm()
    if not run_response_steps(request):
        raise RuntimeError("a response step failed")
    request.move(E_BEGIN)
    start_response(request, head, False)
    return 0 if request.client is None else request.client.flush()


cdef int begin(RequestCore request, int status) except -1:
    if request.state != S_TAKEN:
        raise RuntimeError("the request is answered already")
    return 0 if request.observer is None else request.observer.answered(request, status)


cdef int send_own(RequestCore request, bytes data) except -1:
    if request.state != S_RESPONDING:
        raise RuntimeError("the answer has ended")
    if request.ctx.head.flags & HEAD_IS_HEAD or request.ctx.status in (204, 304):
        return 0
    request.ctx.response_bytes += len(data)
    request.client.send_body(data, len(data))
    return 0 if request.client is None else request.client.flush()


cdef int end_own(RequestCore request) except -1:
    if request.state != S_RESPONDING:
        raise RuntimeError("the answer has ended")
    request.client.end_response(None)
    return request.finish(END_CLEAN)
