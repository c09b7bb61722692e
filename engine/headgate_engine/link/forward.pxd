# From the request head to the backend: picks listener, route and backend, runs the steps on the way, and collects the
# body where somebody reads it whole. The last of the layers of a request; see exchange.pxd.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.attempt cimport Attempting
from headgate_engine.link.contract cimport ServerStream
from headgate_engine.link.worker cimport Worker
from headgate_engine.plan.plans cimport BackendPlan, BindPlan

from libc.stdint cimport int64_t

cdef class Exchange(Attempting):
    cdef BackendPlan entry           # what the route chose: all attempts go there

    cdef int start(self, BindPlan bind) except -1
    cdef int _pick_listener(self) except -1
    cdef int _pick_route(self) except -1
    cdef int _pick_backend(self) except -1
    cdef int _dispatch(self) except -1
    cdef int _dispatched(self, int choice) except -1
    cdef bint _body_ready(self) except -1
    cdef bint _await_body(self) except -1
    cdef int _body_came(self) except -1
    cdef int _want_body(self) except -1
    cdef int _body_complete(self) except -1

cdef Exchange new_exchange(Worker worker, ServerStream client, MessageHead head, int64_t now_ns)
