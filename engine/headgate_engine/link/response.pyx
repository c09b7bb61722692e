"""Responses on their way out; see response.pxd."""

from libc.stdint cimport int64_t, uint32_t

from headgate_engine.context.headers cimport HEAD_CHUNKED, HEAD_CONNECT, HEAD_IS_HEAD, MessageHead, new_head
from headgate_engine.context.request cimport (
    EDIT_ADD_IF_ABSENT, EDIT_APPEND, EDIT_REPLACE_IF_PRESENT, Reply, RequestContext)
from headgate_engine.link.backend cimport Backend
from headgate_engine.link.contract cimport SIZE_KNOWN, SIZE_NONE, SIZE_UNKNOWN
from headgate_engine.link.core cimport END_CLEAN, RequestCore
from headgate_engine.link.grpc_status cimport grpc_reply, is_grpc
from headgate_engine.link.reasons cimport REPLY_INTERNAL
from headgate_engine.link.request_id cimport return_id
from headgate_engine.plan.plans cimport BackendPlan, ListenerPlan, RoutePlan
from headgate_engine.plan.step cimport Step
from headgate_engine.route.table cimport RouteRule, RouteTable

import json
import logging

from headgate_engine.context.request import log_extra

logger = logging.getLogger("headgate.forward")

# What the log says of refusals whose text is not the gateway's own, or that have none.
cdef dict OWN_TEXTS = {"Guardrail": "refused by a guardrail"}
cdef dict EMPTY_TEXTS = {
    ("Authorization", 403): "authorization failed",
    ("InvalidRequest", 405): "method not allowed",
    ("InvalidRequest", 413): "request body too large",
    ("UpstreamFailure", 502): "response body too large",
}
cdef int MAX_TEXT = 512


cdef bint run_response_steps(RequestCore request) except -1:
    if request.broken or request.observer is None and not has_steps(request):
        return True
    try:
        if request.observer is not None:
            request.observer.response_ready()
        run_all(request)
        if request.observer is not None:
            request.observer.response_changed(request)
    except Exception as error:  # task boundary
        logger.exception("a response step failed", extra=log_extra(request.ctx))
        request.broken = True
        request.ctx.error = f"response step failed: {type(error).__name__}"
        return False
    return True


cdef bint has_steps(RequestCore request) noexcept:
    """Whether anything is to be done to the response: most plans want nothing."""
    cdef RoutePlan route = request.route
    cdef BackendPlan backend = request.backend
    cdef ListenerPlan listener = request.listener
    return request.ctx.response_headers is not None or request.ctx.response_edits is not None or (
        route is not None and (route.response_steps or route.response_transforms)) or (
        backend is not None and (backend.response_steps or backend.response_transforms)) or (
        listener is not None and (listener.response_steps or listener.response_transforms))


cdef int run_all(RequestCore request) except -1:
    cdef RoutePlan route = request.route
    cdef BackendPlan backend = request.backend
    cdef ListenerPlan listener = request.listener
    if route is not None and route.response_steps:
        run_steps(request, route.response_steps, "route")
    if backend is not None and backend.response_steps:
        run_steps(request, backend.response_steps, "backend")
    if listener is not None and listener.response_steps:
        run_steps(request, listener.response_steps, "gateway")
    if route is not None and route.response_transforms:
        run_steps(request, route.response_transforms, "route")
    if backend is not None and backend.response_transforms:
        run_steps(request, backend.response_transforms, "backend")
    if listener is not None and listener.response_transforms:
        run_steps(request, listener.response_transforms, "gateway")
    if request.filter is not None and request.filter.changes_response():
        request.filter.owes_headers = True       # they overwrite what the filter makes of the response
        return 0
    return put_collected(request.ctx)


cdef int put_collected(RequestContext ctx) except -1:
    if ctx.response_headers is not None:
        add_headers(ctx)
    return 0 if ctx.response_edits is None else edit_headers(ctx)


cdef int run_steps(RequestCore request, tuple steps, str level) except -1:
    if request.observer is not None:
        return request.observer.run_response_steps(request, steps, level)
    for step in steps:
        (<Step?>step).run(request.ctx)
    return 0


cdef int add_headers(RequestContext ctx) except -1:
    cdef bytes name, value
    for name, value in ctx.response_headers:
        if name.startswith(b"x-ratelimit-") and ctx.response.find(name, len(name), 0) >= 0:
            continue      # a limit further in, told by the backend, stands
        if name != b"set-cookie" and name != b"vary":      # a backend's own values stand beside these
            ctx.response.drop_field(name, len(name))
        ctx.response.add_field(name, len(name), value, len(value))
    return 0


cdef int edit_headers(RequestContext ctx) except -1:
    cdef int edit
    cdef bytes name, value
    cdef bint there
    for edit, name, value in ctx.response_edits:
        there = edit != EDIT_APPEND and ctx.response.find(name, len(name), 0) >= 0
        if edit == (EDIT_ADD_IF_ABSENT if there else EDIT_REPLACE_IF_PRESENT):
            continue
        if there:
            ctx.response.drop_field(name, len(name))
        ctx.response.add_field(name, len(name), value, len(value))
    return 0


cdef int response_size(MessageHead request, MessageHead head, bint rewritten, int64_t* length) noexcept:
    length[0] = head.content_length
    if request.flags & HEAD_IS_HEAD or head.status == 304:
        return SIZE_NONE
    if head.status < 200 or head.status == 204 or request.flags & HEAD_CONNECT and head.status < 300:
        length[0] = -1
        return SIZE_NONE
    if head.content_length >= 0 and not rewritten:
        return SIZE_KNOWN
    length[0] = -1
    return SIZE_UNKNOWN


cdef int start_response(RequestCore request, MessageHead head, bint rewritten) except -1:
    cdef int64_t length
    cdef int size = response_size(request.ctx.head, head, rewritten, &length)
    request.ctx.status = head.status
    request.ctx.response = head
    if request.ctx.request_id is not None:
        return_id(request.ctx, head)
    return request.client.start_response(head, size, length)


cdef int send_whole(RequestCore request, MessageHead head, bytes body) except -1:
    cdef RequestContext ctx = request.ctx
    cdef int64_t length
    request.held = None
    ctx.response = head
    ctx.response_body = body
    ctx.response_cut = False
    if not run_response_steps(request):
        return request.respond(request.worker.reply(REPLY_INTERNAL))
    body = ctx.response_body
    length = head.content_length = len(body)
    head.flags &= ~<uint32_t>HEAD_CHUNKED
    start_response(request, head, False)
    # A filter may end the request.
    if request.client is not None and length and response_size(ctx.head, head, False, &length) == SIZE_KNOWN:
        ctx.response_bytes += length
        request.client.send_body(body, length)
    if request.client is None:
        return 0
    request.client.end_response(None)
    return request.finish(END_CLEAN)


cdef str refusal_text(Reply reply):
    """What the log says of an answer of the gateway's own: its text, where that is the gateway's."""
    cdef str text = OWN_TEXTS.get(reply.reason)
    if text is not None:
        return text
    if reply.body.startswith(b"{"):
        try:
            told = json.loads(reply.body)
            told = told.get("error", told)
            text = told if type(told) is str else str(told.get("message") or "")
        except (AttributeError, ValueError):
            text = ""
    else:
        text = reply.body.decode("utf-8", "replace")
    return text[:MAX_TEXT] or EMPTY_TEXTS.get((reply.reason, reply.status)) or f"status {reply.status}"


cdef Reply told_to_clients(RequestCore request, Reply reply):
    """An answer of the gateway's own as clients of the backend read it; also where steps before the backend refuse."""
    cdef Backend destination = request.destination
    cdef MessageHead head = request.ctx.head
    cdef RoutePlan route = request.route
    cdef RouteRule rule
    if destination is None:
        if route is None and request.listener is not None:
            rule = (<RouteTable>request.listener.routes).match_rule(
                head.data + head.authority_off, head.authority_len, head)
            route = None if rule is None else <RoutePlan>rule.target
        if route is None or not route.backends:
            return reply
        destination = <Backend>(<BackendPlan>route.backends[0]).destination
    return reply if destination is None else destination.own_answer(request.ctx, reply)


cdef int send_reply(RequestCore request, Reply reply) except -1:
    cdef str error = request.ctx.error
    if reply.status >= 400 and reply.reason != "DirectResponse":
        if error is None:
            request.ctx.error = refusal_text(reply)
        elif error.startswith("expression `"):
            request.ctx.error = f"{refusal_text(reply)}: {error}"
    if is_grpc(request.ctx.head):
        reply = grpc_reply(reply)
    elif reply.status >= 400:
        reply = told_to_clients(request, reply)
    request.ctx.reason = reply.reason
    return send_whole(request, head_of(reply.status, reply.headers), reply.body)


cdef MessageHead head_of(int status, object fields):
    cdef MessageHead head = new_head()
    cdef bytes name, value
    head.status = status
    for name, value in fields:
        head.add_field(name, len(name), value, len(value))
    return head


cdef Reply with_detail(Reply reply, str detail):
    """The reply with the reason behind its text, as in `upstream call failed: Connection refused`."""
    return Reply(reply.status, reply.body + b": " + detail.encode("utf-8", "replace"), reply.headers, reply.reason)
