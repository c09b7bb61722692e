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
    cdef readonly str peer_host              # of the client; behind a PROXY protocol header, as that says
    cdef str peer_text               # `peer`, made when first asked for
    cdef readonly int peer_port
    # What a PROXY protocol header has said (link.proxy_header.ProxyAddresses); None: there was none. Set before the
    # connection gets its transport.
    cdef public object proxied
    # The request that opened the tunnel which the connection comes through (context.headers.MessageHead); None: there is none.
    cdef public object connect_head
    # Pool: that of this client alone, whose connections begin with its addresses (link.proxy_sender); None: there is none.
    cdef dict own_pools
    cdef BindPlan named_for          # the plan that `named` is a listener of
    cdef object named                # plan.plans.ListenerPlan of the name in the TLS handshake
    cdef object transport            # for what is rarely asked; None once the connection is gone
    cdef int64_t write_due_ns        # when output that does not move ends the connection; 0: none is queued
    cdef Py_ssize_t write_left       # what was queued at the last look

    # Reads the addresses of a new transport.
    cdef int take_addresses(self, transport) except -1
    # The connection is over, or goes on as another one: what was opened for it alone is closed when it is not in use.
    cdef int gone(self) except -1
    # Arms the timer for queued output: the client must read some of it within the body time-out.
    cdef int watch_output(self) except -1
    # Ends the connection if the client has read no queued output for the body time-out.
    cdef int write_stalled(self, int64_t now) except -1
