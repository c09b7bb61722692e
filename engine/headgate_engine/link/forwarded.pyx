"""Forwarding headers.

With `trusted_hops` = n, the last n entries are kept, because trusted proxies have added them, and the entry of the
gateway is appended. Entries before them may be forged and are dropped; with n = 0 all are.
"""

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.plans cimport BindPlan, FORWARDED_RFC, FORWARDED_X

from headgate_engine.context.field_names import FORWARDED, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO


cdef int add_forwarded(RequestContext ctx, BindPlan bind) except -1:
    cdef MessageHead head = ctx.head
    cdef int hops = bind.trusted_hops
    host = ctx.connection.peer_host or "unknown"
    proto = "https" if bind.secure else "http"
    authority = head.authority
    node = f'"[{host}]"' if ":" in host else host
    element = f'for={node};proto={proto};host="{authority}"'
    if bind.forwarded & FORWARDED_RFC:
        before = _trusted(head.get_list(FORWARDED), hops)
        head.set(FORWARDED, ", ".join([*before, element]))
    if bind.forwarded & FORWARDED_X:
        before = _trusted(head.get_list(X_FORWARDED_FOR), hops)
        head.set(X_FORWARDED_FOR, ", ".join([*before, host]))
        head.set(X_FORWARDED_PROTO, (hops and head.get(X_FORWARDED_PROTO)) or proto)
        head.set(X_FORWARDED_HOST, (hops and head.get(X_FORWARDED_HOST)) or authority)
    return 0


def _trusted(list lines, int hops):
    if hops <= 0:
        return []
    entries = [entry.strip() for line in lines for entry in line.split(",") if entry.strip()]
    return entries[-hops:]
