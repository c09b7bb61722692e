"""Lines and records at the end of requests, counts of refusals and of connections."""

from headgate_engine.clock cimport wall_ns
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.worker cimport Worker
from headgate_engine.log.access cimport AccessLogFormat
from headgate_engine.log.meter cimport BindMeter
from headgate_engine.log.records cimport RecordFormat, RecordSink
from headgate_engine.plan.plans cimport BindPlan, ListenerPlan

from libc.stdint cimport int64_t

import logging

logger = logging.getLogger("headgate.downstream")


cdef int record_request(Worker worker, RequestContext ctx, BindPlan bind) except -1:
    if bind.access_log is not None and worker.log_fd >= 0 and worker.access_log_on:
        (<AccessLogFormat>bind.access_log).write_line(worker.log, ctx, wall_ns())
        worker.log_written()
    if bind.records is not None and worker.records is not None:
        (<RecordSink>worker.records).put(ctx, <RecordFormat>bind.records)
    return 0


cdef int record_refusal(Worker worker, BindPlan bind, ListenerPlan named, str peer, int status, str detail) except -1:
    if worker.segment is not None:
        worker.meters.bind_meter(bind, named).refused.bump(1)
    logger.debug("request refused", extra={"src.addr": peer, "http.status": status, "error": detail})
    return 0


cdef int record_tunnel(Worker worker, RequestContext ctx, BindPlan bind) except -1:
    if bind.access_log is not None and worker.log_fd >= 0 and worker.access_log_on:
        (<AccessLogFormat>bind.access_log).write_line(worker.log, ctx, wall_ns())
        worker.log_written()
    return 0


cdef BindMeter record_connection(Worker worker, BindPlan bind, connection, int64_t handshake_ns):
    cdef BindMeter meter = None
    if worker.segment is not None:
        meter = worker.meters.bind_meter(bind, connection.named_listener(bind) if bind.secure else None)
        meter.connections.bump(1)
        if bind.secure and handshake_ns >= 0:
            meter.handshakes_of().observe_scaled(handshake_ns)
    return meter
