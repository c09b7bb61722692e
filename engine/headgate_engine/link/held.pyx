"""Responses that are held back; see held.pxd."""

from libc.stdint cimport int64_t

from headgate_engine.plan.plans cimport BackendPlan, ListenerPlan, ResponseHold, RoutePlan
from headgate_engine.wire.buffer cimport ByteBuffer


cdef HeldResponse held_response(RoutePlan route, BackendPlan backend, ListenerPlan listener, bint whole):
    cdef HeldResponse found = widened(None, route.hold, whole)
    found = widened(found, backend.hold, whole)
    found = widened(found, listener.hold, whole)
    return None if found is None or found.limit == 0 else found


cdef HeldResponse widened(HeldResponse found, ResponseHold hold, bint whole):
    if hold is None or hold.usage_only and not whole:
        return found
    if found is None:
        found = HeldResponse.__new__(HeldResponse)
        found.body = ByteBuffer()
    found.limit = max(found.limit, hold.limit)
    found.strict = found.strict or hold.strict
    found.prefix = found.prefix or hold.prefix
    return found


cdef class HeldResponse:
    cdef bint fits(self, int64_t length) noexcept:
        return length <= self.limit or self.prefix and not self.strict

    cdef bint add(self, const char* p, Py_ssize_t n) except -1:
        if self.body.length + n > self.limit:
            return False
        self.body.append(p, n)
        return True

    cdef Py_ssize_t fill(self, const char* p, Py_ssize_t n) except -1:
        n = min(n, self.limit - self.body.length)
        self.body.append(p, n)
        return n
