"""Cookies of the gateway's own; see cookies.pxd.

A browser sends the session of one route to all routes of the host. Whoever has such a cookie is logged in, so they are taken
out of a request before anything else sees it: no expression can copy one, no log shows it, and no backend, mirror or
service of a policy gets it. The `oidc` policy finds them in the context.
"""

from headgate_engine.context.headers cimport H_COOKIE, SPAN_SENSITIVE, MessageHead
from headgate_engine.context.request cimport RequestContext

cdef extern from "<string.h>" nogil:
    void* memmem(const void* haystack, size_t n, const void* needle, size_t m)

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    void *memmem(const void *, size_t, const void *, size_t);
    #endif
    """

# What the names of all cookies begin with that the `oidc` policy sets.
SESSION_PREFIX = "gw_oidc_"
cdef bytes prefix = SESSION_PREFIX.encode()


cdef bint has_session(const char* value, Py_ssize_t n) noexcept:
    return memmem(value, n, <const char*>prefix, len(prefix)) != NULL


cdef int take_session_cookies(RequestContext ctx) except -1:
    cdef MessageHead head = ctx.head
    cdef int i = head.find_id(H_COOKIE, 0)
    while i >= 0:
        if has_session(head.data + head.spans[i].value_off, head.spans[i].value_len):
            return take_all(ctx)
        i = head.find_id(H_COOKIE, i + 1)
    return 0


cdef int take_all(RequestContext ctx) except -1:
    cdef MessageHead head = ctx.head
    cdef int i = head.find_id(H_COOKIE, 0)
    cdef bytes line, part
    own, kept = [], []
    while i >= 0:
        line = head.data[head.spans[i].value_off:head.spans[i].value_off + head.spans[i].value_len]
        for part in line.split(b";"):
            part = part.strip(b" \t")
            if part:
                (own if part.startswith(prefix) else kept).append(part)
        i = head.find_id(H_COOKIE, i + 1)
    if not own:
        return 0
    ctx.own_cookies = own
    head.drop_id(H_COOKIE)
    if kept:
        line = b"; ".join(kept)
        head.add_field(b"cookie", 6, line, len(line))
        head.spans[head.count - 1].flags |= SPAN_SENSITIVE
    return 0
