# A response that steps want whole: its head waits until the body is there. Made for such a response alone.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.plan.plans cimport BackendPlan, ListenerPlan, RoutePlan
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class HeldResponse:
    cdef ByteBuffer body
    cdef int64_t limit
    cdef bint strict                 # a longer one is refused; otherwise it goes on as it comes, and steps do not see it
    cdef bint prefix                 # steps see the first `limit` bytes of a longer one

    # Whether to hold a response of this length (-1: unknown).
    cdef bint fits(self, int64_t length) noexcept
    # False when the piece does not fit any more: nothing of it was kept.
    cdef bint add(self, const char* p, Py_ssize_t n) except -1
    # Adds what fits of a piece that does not; how many bytes.
    cdef Py_ssize_t fill(self, const char* p, Py_ssize_t n) except -1

# What the plans want held of one response, the largest limit and the strictest of them; None: nothing. `whole`: a model's
# answer that is no stream, of which the usage is known at its end.
cdef HeldResponse held_response(RoutePlan route, BackendPlan backend, ListenerPlan listener, bint whole)
