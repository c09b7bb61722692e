"""The id of a request; see request_id.pxd. A client's id becomes part of log lines and goes to backends: it is taken over only
if it is short and has visible characters alone.
"""

from headgate_engine.context.headers cimport SPAN_CHECKED, MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.context.trace_context cimport random_uuid
from headgate_engine.plan.plans cimport REQUEST_ID_OFF, REQUEST_ID_TRUST, BindPlan

MAX_LENGTH = 128
cdef Py_ssize_t _max_length = MAX_LENGTH


cdef bint is_usable(const char* p, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if not 33 <= p[i] <= 126:
            return False
    return 0 < n <= _max_length


cdef int put_id(MessageHead head, const char* p, Py_ssize_t n) except -1:
    head.add_field(b"x-request-id", 12, p, n)
    head.spans[head.count - 1].flags |= SPAN_CHECKED
    return 0


cdef int _identify(RequestContext ctx, bint trusted) except -1:
    cdef MessageHead head = ctx.head
    cdef char[36] text
    cdef int at = head.find(b"x-request-id", 12, 0)
    if at >= 0 and trusted and head.find(b"x-request-id", 12, at + 1) < 0 and is_usable(
            head.data + head.spans[at].value_off, head.spans[at].value_len):
        ctx.request_id = head.data[head.spans[at].value_off:head.spans[at].value_off + head.spans[at].value_len]
        return 0
    random_uuid(text)
    ctx.request_id = text[:36]
    if at >= 0:
        head.drop_field(b"x-request-id", 12)
    return put_id(head, text, 36)


cdef int give_id(RequestContext ctx, BindPlan bind) except -1:
    # What was handed on within this process has its id already.
    return _identify(ctx, bind.request_ids == REQUEST_ID_TRUST or ctx.hops > 0 or bind.untraced)


cdef int return_id(RequestContext ctx, MessageHead head) except -1:
    head.drop_field(b"x-request-id", 12)
    return put_id(head, ctx.request_id, len(ctx.request_id))


# -- Python face ---------------------------------------------------------------------------------------------------------
def usable(bytes text not None):
    return bool(is_usable(text, len(text)))


def identify(RequestContext ctx not None, int mode):
    if mode != REQUEST_ID_OFF:
        _identify(ctx, mode == REQUEST_ID_TRUST)
    return ctx.request_id
