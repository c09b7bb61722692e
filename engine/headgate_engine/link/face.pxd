# What steps, logs and expressions see of a client's connection, whatever it speaks.

from headgate_engine.link.contract cimport ServerStream
from headgate_engine.link.wire cimport Wire
from headgate_engine.link.worker cimport Worker
from headgate_engine.plan.plans cimport BindPlan, BindSlot

from libc.stdint cimport int64_t

cdef class ClientFace(ServerStream):
    cdef Worker worker
    cdef BindSlot slot
    cdef BindPlan plan               # plan of the current or last request
    cdef Wire wire
    cdef readonly str peer_host
    cdef str peer_text               # `peer`, made when first asked for
    cdef readonly int peer_port
    cdef BindPlan named_for          # the plan that `named` is a listener of
    cdef object named                # plan.plans.ListenerPlan of the name in the TLS handshake
    cdef object transport            # for what is rarely asked; None once the connection is gone
    cdef int64_t write_due_ns        # when output that does not move ends the connection; 0: none is queued
    cdef Py_ssize_t write_left       # what was queued at the last look

    # Arms the timer for queued output: the client must read some of it within the body time-out.
    cdef int watch_output(self) except -1
    # Ends the connection if the client has read no queued output for the body time-out.
    cdef int write_stalled(self, int64_t now) except -1
