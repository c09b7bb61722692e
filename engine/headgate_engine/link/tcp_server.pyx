"""Client connections whose bytes go to a backend as they come; see tcp_server.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport MessageHead, new_head
from headgate_engine.context.request cimport RequestContext, new_context, release_context
from headgate_engine.link.admission cimport permitted, question_of
from headgate_engine.link.backend cimport Backend
from headgate_engine.link.contract cimport (
    CONNECT_FORBIDDEN, CONNECT_TIMED_OUT, CONNECT_UNRESOLVED, WRITE_FAILED, WRITE_QUEUED, ClientStream, RequestFactory,
    ResponseSink)
from headgate_engine.link.endpoints cimport EndpointSet, EndpointState
from headgate_engine.link.face cimport ClientFace
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.record cimport record_connection, record_tunnel
from headgate_engine.link.retry_after cimport NO_HINT
from headgate_engine.link.tcp_upstream cimport BurstWire, TcpUpstreamStream
from headgate_engine.link.wire cimport wired
from headgate_engine.link.worker cimport Worker
from headgate_engine.plan.plans cimport BackendPlan, BindSlot, ListenerPlan, RoutePlan
from headgate_engine.route.table cimport HostTable
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

from headgate_engine.errors import DestinationRefusedError
from headgate_engine.link.addresses import address_text
from headgate_engine.link.admission import ask

import logging

logger = logging.getLogger("headgate.downstream")

cdef str LEFT = "client closed the connection"


cdef class TcpWire(BurstWire):
    cdef int hand_over(self, Py_ssize_t n) except -1:
        cdef TcpConnection connection = <TcpConnection>self.owner
        return 0 if connection is None else connection.read(n)


cdef class TcpConnection(ClientFace):
    def __init__(self, Worker worker not None, BindSlot slot not None, RequestFactory requests=None, str asked=None,
                 bytes first not None=b""):
        self.worker = worker
        self.slot = slot
        self.plan = slot.plan
        self.asked = asked
        self.wire = wired(TcpWire.__new__(TcpWire), worker, self)
        if first:
            self.early = ByteBuffer()
            self.early.append(first, len(first))

    # -- asyncio.BufferedProtocol ------------------------------------------------------------------------------------
    def connection_made(self, transport):
        self.wire.attach(transport)
        self.take_addresses(transport)
        if not self.worker.connection_made(self):
            self.wire.abort_wire()
            return
        try:
            self.begin()
        except Exception:  # task boundary: a fault here ends this connection, never the loop
            logger.exception("client connection failed")
            self.break_off("internal error", "Internal")

    def get_buffer(self, sizehint):
        return self.worker.scratch_view

    def buffer_updated(self, Py_ssize_t n):
        self.read(n)
        self.wire.read_by_loop()

    cdef int read(self, Py_ssize_t n) except -1:
        try:
            if self.ctx is None:
                return 0
            if self.call is not None and self.call.stream is not None:
                return self.to_upstream(self.worker.scratch, n)
            # What comes behind it waits in the socket.
            if self.early is None:
                self.early = ByteBuffer()
            self.early.append(self.worker.scratch, n)
            return self.wire.pause_wire()
        except Exception:  # task boundary
            logger.exception("client connection failed")
            return self.break_off("internal error", "Internal")

    def eof_received(self):
        cdef TcpCall call = self.call
        try:
            if self.ctx is None:
                return False
            self.client_ended = True
            if call is not None and call.stream is not None:
                call.stream.write_eof()
                if self.upstream_ended:
                    self.complete()
        except Exception:  # task boundary
            logger.exception("client connection failed")
            self.break_off("internal error", "Internal")
        return self.ctx is not None

    def connection_lost(self, exc):
        exc = exc or self.wire.read_error
        self.lost = True
        try:
            self.settle(LEFT if exc is None else f"client connection lost: {exc}", None, False)
            self.gone()
        except Exception:  # task boundary
            logger.exception("client connection failed")
        self.wire.detach()
        self.transport = None

    def pause_writing(self):
        self.wire.queued = True

    def resume_writing(self):
        cdef TcpCall call = self.call
        self.wire.queued = False
        if call is not None and call.stream is not None:
            call.stream.resume_response()

    def on_timer(self, now_ns):
        """None is armed."""

    # -- the way to the backend --------------------------------------------------------------------------------------
    cdef int begin(self) except -1:
        cdef RequestContext ctx = new_context()
        cdef ListenerPlan listener
        self.ctx = ctx
        self.plan = self.slot.plan
        ctx.head = new_head()
        ctx.connection = self
        ctx.protocol = "tcp"
        ctx.secure = self.plan.secure
        ctx.started_ns = monotonic_ns()
        listener = self.named_listener(self.plan) if self.plan.secure else self.plan.sole_listener
        ctx.listener = listener
        self.meter = record_connection(
            self.worker, self.plan, self, -1 if self.wire.tls is None else self.wire.tls.handshake_ns)
        if listener is None or listener.tcp is None:
            return self.break_off("listener not found", "NotFound")
        if not permitted(self.plan, ctx):
            if self.meter is not None:
                self.meter.refused.bump(1)
            return self.break_off(ctx.error, ctx.reason)
        question = question_of(self.plan)
        if question is not None:
            self.asking = self.worker.spawn("networkExtAuthz", ask(question, ctx, self.decided))
            return 0
        return self.choose()

    def decided(self, str refusal):
        """Choose a backend, or end the connection: a service has decided about it."""
        self.asking = None
        if self.ctx is None:
            return
        try:
            if refusal is None:
                self.choose()
                return
            if self.meter is not None:
                self.meter.refused.bump(1)
            self.break_off(refusal, "ExtAuth")
        except Exception:  # task boundary
            logger.exception("client connection failed")
            self.break_off("internal error", "Internal")

    cdef int choose(self) except -1:
        cdef RequestContext ctx = self.ctx
        cdef ListenerPlan listener = <ListenerPlan>ctx.listener
        cdef bytes name = (self.server_name or "").encode("ascii", "replace")
        cdef RoutePlan route = <RoutePlan>(<HostTable>listener.tcp).find(name, len(name))
        cdef BackendPlan backend
        cdef Backend destination
        if route is None:
            return self.break_off("route not found", "NotFound")
        ctx.route = route
        backend = route.choose()
        if backend is None:
            return self.break_off("no valid backends", "NoHealthyBackend")
        ctx.backend = backend
        destination = <Backend>backend.destination
        if destination.failure is not None:
            return self.break_off(destination.failure.body.decode("utf-8", "replace"), destination.failure.reason)
        return self.connect(None)

    cdef int connect(self, EndpointState avoid) except -1:
        cdef RequestContext ctx = self.ctx
        cdef BackendPlan backend = <BackendPlan>ctx.backend
        cdef TcpCall call = TcpCall.__new__(TcpCall)
        call.connection = self
        if backend.endpoints is not None:
            call.endpoint = (<EndpointSet>backend.endpoints).pick(ctx, avoid)
            if call.endpoint is None:
                return self.break_off("no healthy backends", "NoHealthyBackend")
            call.pool = <Pool>call.endpoint.tcp_pool
            call.endpoint.begin()
        elif backend.pool is not None:
            call.pool = <Pool>backend.pool
        else:
            try:
                call.pool = (<Backend>backend.destination).pool_of_name(self.server_name, self.wanted_port())
            except DestinationRefusedError as error:
                return self.break_off(f"destination not allowed: {error}", "Authorization")
            except (OSError, ValueError) as error:
                return self.break_off(f"no destination: {error}", "InvalidRequest")
        if call.pool.clients is not None:
            call.pool = call.pool.clients.pool_of(call.pool, self)
        ctx.attempts += 1
        ctx.endpoint = call.pool.endpoint
        call.started_ns = ctx.upstream_started_ns = monotonic_ns()
        call.connecting = True
        self.call = call
        call.pool.acquire(call, False, False)
        return 0

    cdef int wanted_port(self) except -1:
        """The port that the client wants to reach."""
        cdef MessageHead tunnel = <MessageHead>self.connect_head
        if tunnel is None:
            return self.local[1]
        return int((<bytes>tunnel.data[tunnel.authority_off:tunnel.authority_off + tunnel.authority_len]).rpartition(b":")[2])

    cdef int connect_failed(self, EndpointState endpoint, int failure, str detail) except -1:
        cdef BackendPlan backend = <BackendPlan>self.ctx.backend
        # Nothing has been sent: another endpoint may be had.
        if endpoint is not None and self.ctx.attempts < min(MOST_TRIES, len((<EndpointSet>backend.endpoints).endpoints)):
            self.call = None
            return self.connect(endpoint)
        if failure == CONNECT_TIMED_OUT:
            return self.break_off("upstream call timeout", "Timeout")
        if failure == CONNECT_FORBIDDEN:
            return self.break_off(f"destination not allowed: {detail}", "Authorization")
        if failure == CONNECT_UNRESOLVED:
            return self.break_off(f"backends required DNS resolution which failed: {detail}", "UpstreamFailure")
        return self.break_off(f"upstream call failed: {detail}", "UpstreamFailure")

    cdef int connected(self, TcpUpstreamStream stream) except -1:
        cdef ByteBuffer early = self.early
        self.early = None
        if early is not None and early.length:
            self.to_upstream(early.data, early.length)
        if self.client_ended:
            return stream.write_eof()
        return 0 if stream.congested() else self.wire.resume_wire()

    # -- bytes -------------------------------------------------------------------------------------------------------
    cdef int to_upstream(self, const char* p, Py_ssize_t n) except -1:
        cdef TcpUpstreamStream stream = self.call.stream
        self.ctx.request_bytes += n
        if self.meter is not None:
            self.meter.received.bump(n)
        # A backend that takes no more may have said why: that is read, and then its end.
        return 0 if stream.send_tunnel_data(p, n) not in (WRITE_QUEUED, WRITE_FAILED) else self.wire.pause_wire()

    cdef int to_client(self, const char* p, Py_ssize_t n) except -1:
        cdef TcpCall call = self.call
        cdef int result = self.wire.write_out(self.worker.to_client, p, n)
        self.ctx.response_bytes += n
        if self.meter is not None:
            self.meter.sent.bump(n)
        if result == WRITE_QUEUED:
            return call.stream.pause_response()
        return self.break_off(LEFT, None) if result == WRITE_FAILED else 0

    # -- ends --------------------------------------------------------------------------------------------------------
    cdef int backend_ended(self) except -1:
        self.upstream_ended = True
        (<BurstWire>self.wire).end_output()
        return self.complete() if self.client_ended else 0

    cdef int backend_failed(self, str detail) except -1:
        return self.break_off(f"upstream {detail}", "UpstreamFailure")

    cdef int complete(self) except -1:
        self.settle(None, None, True)
        return self.wire.close_wire()

    cdef int break_off(self, str detail, str reason) except -1:
        self.settle(detail, reason, False)
        return 0 if self.lost else (<BurstWire>self.wire).reset()

    cdef int settle(self, str detail, str reason, bint clean) except -1:
        cdef RequestContext ctx = self.ctx
        cdef TcpCall call = self.call
        if ctx is None:
            return 0
        asking, self.asking = self.asking, None
        if asking is not None:
            asking.cancel()
        self.ctx = self.call = self.early = None
        ctx.finished_ns = monotonic_ns()
        ctx.error = detail
        ctx.reason = reason
        if call is not None:
            call.end(clean)
        fields = [("bytes.received", ctx.request_bytes), ("bytes.sent", ctx.response_bytes)]
        if self.transport is not None:
            fields.append(("dst.addr", address_text(*self.local)))
        ctx.log_fields = fields
        record_tunnel(self.worker, ctx, self.plan)
        release_context(ctx)
        return 0

    cdef int abort(self) except -1:
        self.settle(LEFT, None, False)
        return 0 if self.lost else self.wire.abort_wire()

    # -- what is seen of it ------------------------------------------------------------------------------------------
    @property
    def server_name(self):
        """The name that the client asks for in its TLS handshake; None without one."""
        return self.asked if self.wire.tls is None else self.wire.tls.requested_name

    def close_if_idle(self, int64_t before_ns):
        """Drains: a connection ends when its client and its backend end it, or with the drain."""
        return False

    def abort_now(self):
        self.break_off("the gateway shuts down", "Internal")

    @property
    def is_idle(self):
        return False


cdef class TcpCall(ResponseSink):
    cdef int on_connected(self, ClientStream stream) except -1:
        cdef TcpConnection connection = self.connection
        self.connecting = False
        if connection is None:
            return stream.cancel()
        self.stream = <TcpUpstreamStream?>stream
        if self.endpoint is not None:
            self.endpoint.succeeded((monotonic_ns() - self.started_ns) / 1e9)
        return connection.connected(self.stream)

    cdef int on_connect_failed(self, int failure, str detail) except -1:
        cdef TcpConnection connection = self.connection
        cdef EndpointState endpoint = self.endpoint
        self.connecting = False
        if connection is None:
            return 0
        if endpoint is not None:
            (<EndpointSet>(<BackendPlan>connection.ctx.backend).endpoints).failed(endpoint, NO_HINT)
        self.end(True)
        return connection.connect_failed(endpoint, failure, detail)

    cdef int on_refused(self, str detail) except -1:
        cdef TcpConnection connection = self.connection
        self.connecting = False
        return 0 if connection is None else connection.break_off(f"upstream call failed: {detail}", "UpstreamFailure")

    cdef int on_upstream_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        cdef TcpConnection connection = self.connection
        return 0 if connection is None else connection.to_client(p, n)

    cdef int on_upstream_writable(self) except -1:
        cdef TcpConnection connection = self.connection
        return 0 if connection is None else connection.wire.resume_wire()

    cdef int on_upstream_eof(self) except -1:
        cdef TcpConnection connection = self.connection
        return 0 if connection is None else connection.backend_ended()

    cdef int on_upstream_failed(self, bint bytes_seen, str detail) except -1:
        cdef TcpConnection connection = self.connection
        return 0 if connection is None else connection.backend_failed(detail)

    cdef int end(self, bint clean) except -1:
        cdef TcpUpstreamStream stream = self.stream
        if self.connection is None:
            return 0
        self.connection = None
        self.stream = None
        if self.endpoint is not None:
            self.endpoint.end()
        if self.connecting:
            self.connecting = False
            self.pool.withdraw(self)
        if stream is not None:
            return stream.connection.finish() if clean else stream.connection.reset()
        return 0
