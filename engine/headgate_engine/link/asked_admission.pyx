"""A connection that carries HTTP and waits for a service to say whether it may; see asked_admission.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.request cimport release_context
from headgate_engine.link.admission cimport context_of, record_refused
from headgate_engine.link.downstream cimport DownstreamConnection
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from headgate_engine.link.addresses import chosen_protocol
from headgate_engine.link.admission import ask

import logging

logger = logging.getLogger("headgate.downstream")


cdef class AskedAdmission(Takeover):
    def __init__(self, DownstreamConnection connection not None, question not None):
        self.connection = connection
        connection.tunnel = True
        connection.other = self
        self.early = ByteBuffer()
        self.ctx = context_of(connection)
        self.task = connection.worker.spawn("networkExtAuthz", ask(question, self.ctx, self.decided))

    cdef int read(self, Py_ssize_t n) except -1:
        cdef DownstreamConnection connection = self.connection
        if connection is None:
            return 0
        self.early.append(connection.worker.scratch, n)
        return connection.wire.pause_wire()

    cdef bint ended(self) except -1:
        self.client_ended = True
        return self.connection is not None and self.connection.wire.tls is None

    cdef int lost(self) except -1:
        return self.let_go()

    cdef int writable(self) except -1:
        return 0

    cdef int on_timer(self, int64_t now_ns) except -1:
        return 0

    cdef bint idle(self) noexcept:
        return False

    cdef bint leave(self, int64_t before_ns) except -1:
        return False

    cdef int abort(self) except -1:
        cdef DownstreamConnection connection = self.connection
        self.let_go()
        return 0 if connection is None else connection.wire.abort_wire()

    cdef int let_go(self) except -1:
        task, self.task = self.task, None
        if self.connection is None:
            return 0
        self.connection = None
        release_context(self.ctx)
        self.ctx = None
        if task is not None:
            task.cancel()
        return 0

    def decided(self, str refusal):
        """Let the connection go on, or end it without an answer."""
        cdef DownstreamConnection connection = self.connection
        self.task = None
        if connection is None or connection.lost:
            return
        try:
            if refusal is None:
                self.go_on()
            else:
                self.refuse(refusal)
        except Exception:  # task boundary: a fault here ends this connection
            logger.exception("client connection failed")
            connection.wire.abort_wire()

    cdef int refuse(self, str detail) except -1:
        cdef DownstreamConnection connection = self.connection
        self.ctx.error, self.ctx.reason = detail, "ExtAuth"
        record_refused(connection, self.ctx)
        self.let_go()
        return connection.wire.abort_wire()

    cdef int go_on(self) except -1:
        cdef DownstreamConnection connection = self.connection
        cdef ByteBuffer early = self.early
        cdef Py_ssize_t n, at = 0
        self.let_go()
        connection.tunnel = False
        connection.other = None
        connection.idle_since_ns = monotonic_ns()
        connection.worker.timers.arm(connection.wire, connection.idle_since_ns + connection.plan.idle_timeout_ns)
        if connection.plan.secure and chosen_protocol(connection.transport) == "h2":
            connection.take_over()
        while at < early.length and not connection.lost and not connection.wire.closing:
            n = min(early.length - at, <Py_ssize_t>len(connection.worker.scratch_view))
            memcpy(connection.worker.scratch, early.data + at, n)
            at += n
            connection.read(n)
        if connection.lost or connection.wire.closing:
            return 0
        if connection.sink is None or not connection.request_done:
            # While a request that is whole is answered, the rest waits in the socket.
            connection.wire.resume_wire()
        if self.client_ended and not connection.eof_received():
            return connection.wire.close_wire()
        return 0
