"""Forwarding headers.

With `trusted_hops` = n, the last n entries that the client sent are kept as the word of proxies we trust and our own
entry is appended; everything before them, and everything when n is 0, may be forged and is dropped.
"""

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.plans cimport BindPlan, FORWARDED_RFC, FORWARDED_X


cdef int add_forwarded(RequestContext ctx, BindPlan bind) except -1:
    cdef MessageHead head = ctx.head
    cdef int hops = bind.trusted_hops
    host = ctx.connection.peer_host or "unknown"
    proto = "https" if bind.secure else "http"
    authority = head.authority
    node = f'"[{host}]"' if ":" in host else host
    element = f'for={node};proto={proto};host="{authority}"'
    if bind.forwarded & FORWARDED_RFC:
        before = _trusted(head.get_list("forwarded"), hops)
        head.set("forwarded", ", ".join([*before, element]))
    if bind.forwarded & FORWARDED_X:
        before = _trusted(head.get_list("x-forwarded-for"), hops)
        head.set("x-forwarded-for", ", ".join([*before, host]))
        head.set("x-forwarded-proto", (hops and head.get("x-forwarded-proto")) or proto)
        head.set("x-forwarded-host", (hops and head.get("x-forwarded-host")) or authority)
    return 0


def _trusted(list lines, int hops):
    if hops <= 0:
        return []
    entries = [entry.strip() for line in lines for entry in line.split(",") if entry.strip()]
    return entries[-hops:]
