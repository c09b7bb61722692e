"""The start of requests; see factory.pxd."""

from libc.stdint cimport int64_t

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport new_context, RequestContext
from headgate_engine.link.contract cimport RequestFactory, RequestSink, ServerStream
from headgate_engine.link.exchange cimport Exchange
from headgate_engine.link.traced cimport observer_of
from headgate_engine.link.worker cimport Worker
from headgate_engine.plan.plans cimport BindPlan


cdef class ExchangeFactory(RequestFactory):
    """Makes an exchange for each request of the connections of a worker."""

    def __init__(self, Worker worker not None):
        self.worker = worker

    cdef RequestSink new_request(
            self, ServerStream stream, object connection, str peer, MessageHead head, BindPlan plan, int64_t now_ns):
        cdef Exchange exchange = Exchange.__new__(Exchange)
        cdef RequestContext ctx = new_context()
        exchange.worker = self.worker
        exchange.client = stream
        exchange.bind = plan
        exchange.ctx = ctx
        ctx.head = head
        ctx.connection = connection
        ctx.peer_text = peer
        ctx.exchange = exchange
        ctx.secure = plan.secure
        ctx.started_ns = now_ns
        ctx.target_off = head.target_off
        ctx.target_len = head.target_len
        ctx.host_off = head.authority_off
        ctx.host_len = head.authority_len
        if self.worker.watchers is not None:
            exchange.observer = observer_of(exchange)
            if exchange.observer is not None:
                exchange.client = exchange.observer.watch_client(stream)
        return exchange
