"""CSRF by Sec-Fetch-Site (https://www.w3.org/TR/fetch-metadata/) and Origin (RFC 6454)."""

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.plan.step cimport CONTINUE, RESPOND, Step

from headgate_engine.steps.cors import normalised

SAFE = (b"GET", b"HEAD", b"OPTIONS")


cdef bytes value_of(MessageHead head, bytes name):
    cdef int i = head.find(name, len(name), 0)
    if i < 0:
        return None
    return head.data[head.spans[i].value_off:head.spans[i].value_off + head.spans[i].value_len]


cdef class CsrfStep(Step):
    """origins: scheme://host[:port] of other sites that may send requests. refused: the reply to all others."""

    def __init__(self, origins, Reply refused):
        self.name = "csrf"
        self.origins = frozenset(normalised(origin.encode("ascii")) for origin in origins)
        self.refused = refused

    cdef bint passes(self, RequestContext ctx) except -1:
        cdef MessageHead head = ctx.head
        cdef bytes method = head.data[head.method_off:head.method_off + head.method_len]
        if method in SAFE:
            return True
        origin = value_of(head, b"origin")
        site = value_of(head, b"sec-fetch-site")
        if site is not None:
            if site == b"same-origin" or site == b"none":
                return True
            return origin is not None and normalised(origin) in self.origins
        if origin is None:
            return True                      # browsers send an origin with all cross-site requests
        origin = normalised(origin)
        own = (b"https://" if ctx.secure else b"http://") + head.data[
            head.authority_off:head.authority_off + head.authority_len]
        return origin == normalised(own) or origin in self.origins

    cdef int run(self, RequestContext ctx) except -1:
        if self.passes(ctx):
            return CONTINUE
        ctx.reply = self.refused
        return RESPOND
