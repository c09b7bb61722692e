"""Lines and records at the end of requests, counts of refusals and of connections."""

from headgate_engine.clock cimport monotonic_ns, wall_ns
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.worker cimport Worker
from headgate_engine.log.access cimport AccessLogFormat, level_of
from headgate_engine.log.meter cimport BindMeter
from headgate_engine.log.otlp_log cimport OtlpLogPlan
from headgate_engine.log.records cimport RecordFormat, RecordSink
from headgate_engine.log.spans cimport RequestSpans
from headgate_engine.plan.plans cimport BindPlan, ListenerPlan

from libc.stdint cimport int64_t

import logging

logger = logging.getLogger("headgate.downstream")

# Lines about requests that were refused before they were requests: so many in this time, for each worker.
cdef enum:
    TOLD_AT_MOST = 20
cdef int64_t TELL_NS = 10000000000
cdef int told = 0
cdef int64_t untold = 0
cdef int64_t told_since_ns = 0


cdef int write_line(Worker worker, RequestContext ctx, BindPlan bind) except -1:
    if bind.access_log is not None and worker.log_fd >= 0 and worker.access_log_on and level_of(ctx) >= worker.log_level:
        (<AccessLogFormat>bind.access_log).write_line(worker.log, ctx, wall_ns())
        worker.log_written()
    return 0


cdef int record_begun(Worker worker, RequestContext ctx, BindPlan bind) except -1:
    worker.requests += 1
    if ctx.hops > 0 or bind.untraced:
        worker.ended += 1                  # in flight where its client sent it, and nowhere else
    return 0


cdef int record_request(Worker worker, RequestContext ctx, BindPlan bind) except -1:
    if ctx.hops == 0 and not bind.untraced:
        worker.ended += 1
    write_line(worker, ctx, bind)
    if bind.otlp_log is not None and not bind.untraced:
        (<OtlpLogPlan>bind.otlp_log).put(ctx, wall_ns())
    if ctx.trace_context is not None and ctx.trace_context.sampled:
        if (<RequestSpans>ctx.trace_context).finish(ctx) and not bind.untraced:
            worker.meters.exemplify(ctx, bind)
    if bind.records is not None and worker.records is not None:
        (<RecordSink>worker.records).put(ctx, <RecordFormat>bind.records)
    return 0


cdef int record_refusal(Worker worker, BindPlan bind, ListenerPlan named, str peer, int status, str detail) except -1:
    # Without `peer` the request has a line of its own.
    if worker.segment is not None:
        worker.meters.bind_meter(bind, named).refused.bump(1)
    return 0 if peer is None else _tell(peer, status, detail)


cdef int _tell(str peer, int status, str detail) except -1:
    """Writes one line, unless there were many of them just now: then the next one says how many were left out."""
    global told, untold, told_since_ns
    cdef int64_t now_ns = monotonic_ns()
    if not told_since_ns or now_ns - told_since_ns >= TELL_NS:
        told_since_ns, told = now_ns, 0
    if told >= TOLD_AT_MOST:
        untold += 1
        return 0
    told += 1
    reason = "Timeout" if status == 408 else "TooLarge" if status in (413, 414, 431) else "Malformed"
    fields = {"src.addr": peer, "http.status": status, "reason": reason, "error": detail}
    if untold:
        fields["untold"], untold = untold, 0
    logger.info("request refused", extra=fields)
    return 0


cdef int record_tunnel(Worker worker, RequestContext ctx, BindPlan bind) except -1:
    write_line(worker, ctx, bind)
    if bind.otlp_log is not None:
        (<OtlpLogPlan>bind.otlp_log).put(ctx, wall_ns())
    return 0


cdef BindMeter record_connection(Worker worker, BindPlan bind, connection, int64_t handshake_ns):
    cdef BindMeter meter = None
    if worker.segment is not None:
        meter = worker.meters.bind_meter(bind, connection.named_listener(bind) if bind.secure else None)
        meter.connections.bump(1)
        if bind.secure and handshake_ns >= 0:
            meter.handshakes_of().observe_scaled(handshake_ns)
    return meter
