"""Agents that speak A2A; see backend.pxd."""

from libc.stdint cimport int64_t

from headgate_engine.a2a.answer cimport answer_tap
from headgate_engine.a2a.card cimport card_tap
from headgate_engine.a2a.place cimport AgentPlace
from headgate_engine.context.authority cimport is_authority
from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.link.backend cimport Backend, PoolBackend, RoutedRequest
from headgate_engine.plan.plans cimport BindPlan
from headgate_engine.route.table cimport RouteRule
from headgate_engine.steps.a2a cimport A2A_CARD, A2A_OTHER, A2A_REST, client_path_of, kind_of

from headgate_engine.context.field_names import X_FORWARDED_HOST, X_FORWARDED_PROTO

# What would make the answer something else than the whole card, in no coding.
PARTIAL = (b"accept-encoding", b"range", b"if-range")
cdef tuple _partial = PARTIAL


cdef class A2aBackend(Backend):
    """`inner` says where requests go. `prefix`: what the route puts in the place of a path prefix. `limit`: bytes of a
    card, and of an answer that is read for the log. `failed`: the answer where a card cannot be rewritten.
    """

    def __init__(self, PoolBackend inner not None, *, int64_t limit, Reply failed not None, bytes prefix=None):
        if limit < 0:
            raise ValueError("the limit is negative")
        self.inner = inner
        self.limit = limit
        self.failed = failed
        self.prefix = prefix
        self.serves_half_closed = inner.serves_half_closed

    cdef int dispatch(self, RoutedRequest request) except -1:
        cdef bytes client_path = client_path_of(request.ctx)
        cdef int kind = kind_of(request.ctx.head, client_path)
        if kind == A2A_CARD:
            return self._card(request, client_path)
        if kind != A2A_OTHER:
            request.tap = answer_tap(kind == A2A_REST, self.limit)
        return self.inner.dispatch(request)

    cdef int _card(self, RoutedRequest request, bytes client_path) except -1:
        cdef RequestContext ctx = request.ctx
        cdef MessageHead head = ctx.head
        cdef str scheme = self._scheme(ctx)
        cdef bytes authority = self._authority(ctx, request.bind)
        cdef RouteRule rule = <RouteRule>ctx.rule
        cdef tuple rewrite = None
        cdef int choice
        for name in _partial:
            head.drop_field(<bytes>name, len(<bytes>name))
        head.add_field(b"accept-encoding", 15, b"identity", 8)
        choice = self.inner.dispatch(request)
        if self.prefix is not None and rule is not None and rule.prefix_length():
            rewrite = (client_path[:rule.prefix_length()], self.prefix)
        place = AgentPlace(scheme, authority, client_path, head.data[head.target_off:head.target_off + head.path_len], rewrite)
        request.tap = card_tap(place, self.limit, self.failed)
        return choice

    cdef str _scheme(self, RequestContext ctx):
        """What a proxy in front says, else that of the connection. `config.forwarding` has replaced what a client forges."""
        told = ctx.head.get(X_FORWARDED_PROTO)
        return told if told in ("http", "https") else "https" if ctx.secure else "http"

    cdef bytes _authority(self, RequestContext ctx, BindPlan bind):
        """What a trusted proxy in front says, else what the client asked for."""
        cdef MessageHead head = ctx.head
        cdef bytes told
        if bind.trusted_hops:
            text = head.get(X_FORWARDED_HOST)
            if text is not None and text.isascii() and text != head.authority:
                told = text.partition(",")[0].strip().encode("ascii")
                if told and is_authority(told, len(told)):
                    return told
        if ctx.host_len:
            return head.data[ctx.host_off:ctx.host_off + ctx.host_len]
        return head.data[head.authority_off:head.authority_off + head.authority_len]
