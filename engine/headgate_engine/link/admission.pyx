"""Who may connect; see admission.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport new_head
from headgate_engine.context.request cimport RequestContext, new_context, release_context
from headgate_engine.link.face cimport ClientFace
from headgate_engine.link.record cimport record_connection, record_tunnel
from headgate_engine.plan.plans cimport BindPlan, ListenerPlan
from headgate_engine.plan.step cimport CONTINUE, Step


cdef bint permitted(BindPlan plan, RequestContext ctx) except -1:
    if plan.admission is None or (<Step>plan.admission).run(ctx) == CONTINUE:
        return True
    # The rule that could not be evaluated, where that was it.
    ctx.error = "network authorization failed" if ctx.error is None else f"network authorization failed: {ctx.error}"
    ctx.reason = "Authorization"
    return False


cdef bint admitted(ClientFace face) except -1:
    cdef BindPlan plan = face.plan
    cdef RequestContext ctx
    cdef ListenerPlan listener
    record_connection(face.worker, plan, face, 0 if face.wire.tls is None else face.wire.tls.handshake_ns)
    if plan.admission is None:
        return True
    listener = face.named_listener(plan) if plan.secure else plan.sole_listener
    ctx = new_context()
    ctx.head = new_head()
    ctx.connection = face
    ctx.protocol = "tcp"           # it has come no further
    ctx.secure = plan.secure
    ctx.listener = listener
    ctx.started_ns = monotonic_ns()
    try:
        if permitted(plan, ctx):
            return True
        ctx.finished_ns = monotonic_ns()
        if face.worker.segment is not None:
            face.worker.meters.bind_meter(plan, listener).refused.bump(1)
        record_tunnel(face.worker, ctx, plan)
        return False
    finally:
        release_context(ctx)
