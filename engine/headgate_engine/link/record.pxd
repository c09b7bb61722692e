# What is kept of a request: that it is under way, and at its end its access-log line and its record; exchange.pyx has counted
# it before.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.worker cimport Worker
from headgate_engine.log.meter cimport BindMeter
from headgate_engine.plan.plans cimport BindPlan, ListenerPlan

from libc.stdint cimport int64_t

# A request has begun. One that was handed on within the process is in flight where its client sent it.
cdef int record_begun(Worker worker, RequestContext ctx, BindPlan bind) except -1
cdef int record_request(Worker worker, RequestContext ctx, BindPlan bind) except -1
# A request refused before it had a context: malformed, or overdue.
cdef int record_refusal(Worker worker, BindPlan bind, ListenerPlan named, str peer, int status, str detail) except -1
# A connection whose bytes went on as they came. It is no request: the request log does not have it.
cdef int record_tunnel(Worker worker, RequestContext ctx, BindPlan bind) except -1
# handshake_ns: how long the TLS handshake took; -1: there was none. Returns where its bytes are counted, None: nowhere.
cdef BindMeter record_connection(Worker worker, BindPlan bind, connection, int64_t handshake_ns)
