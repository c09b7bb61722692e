"""Who may connect; see admission.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport new_head
from headgate_engine.context.request cimport RequestContext, new_context, release_context
from headgate_engine.link.face cimport ClientFace
from headgate_engine.link.record cimport record_connection, record_tunnel
from headgate_engine.plan.plans cimport BindPlan, ListenerPlan
from headgate_engine.plan.step cimport CONTINUE, Step
from headgate_engine.steps.connection_check cimport ConnectionCheck

import logging

logger = logging.getLogger("headgate.downstream")


cdef bint permitted(BindPlan plan, RequestContext ctx) except -1:
    if plan.admission is None or (<Step>plan.admission).run(ctx) == CONTINUE:
        return True
    # The rule that could not be evaluated, where that was it.
    ctx.error = "network authorization failed" if ctx.error is None else f"network authorization failed: {ctx.error}"
    ctx.reason = "Authorization"
    return False


cdef object question_of(BindPlan plan):
    return (<ConnectionCheck>plan.admission).question if isinstance(plan.admission, ConnectionCheck) else None


cdef bint waits(ClientFace face) except -1:
    question = question_of(face.plan)
    if question is None:
        return False
    from headgate_engine.link.asked_admission import AskedAdmission  # which uses this module
    AskedAdmission(face, question)
    return True


async def ask(question, RequestContext ctx, decided):
    """Ask about a connection, and call decided() with why it is refused, None if it is not."""
    try:
        refusal = await question(ctx)
    except Exception:  # task boundary: nobody knows who may connect
        logger.exception("networkExtAuthz failed")
        refusal = "internal error"
    decided(refusal)


cdef RequestContext context_of(ClientFace face):
    cdef BindPlan plan = face.plan
    cdef RequestContext ctx = new_context()
    ctx.head = new_head()
    ctx.connection = face
    ctx.protocol = "tcp"           # it has come no further
    ctx.secure = plan.secure
    ctx.listener = face.named_listener(plan) if plan.secure else plan.sole_listener
    ctx.started_ns = monotonic_ns()
    return ctx


cdef int record_refused(ClientFace face, RequestContext ctx) except -1:
    ctx.finished_ns = monotonic_ns()
    if face.worker.segment is not None:
        face.worker.meters.bind_meter(face.plan, <ListenerPlan>ctx.listener).refused.bump(1)
    return record_tunnel(face.worker, ctx, face.plan)


cdef bint admitted(ClientFace face) except -1:
    cdef BindPlan plan = face.plan
    cdef RequestContext ctx
    record_connection(face.worker, plan, face, 0 if face.wire.tls is None else face.wire.tls.handshake_ns)
    if plan.admission is None:
        return True
    ctx = context_of(face)
    try:
        if permitted(plan, ctx):
            return True
        record_refused(face, ctx)
        return False
    finally:
        release_context(ctx)
