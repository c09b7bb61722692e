# One request on its way: takes it down its phases (listener, steps, route, backend), has it sent by an attempt or answered by
# its backend, and the response to the client. It is the request's state, and what joins its parts (link/core lists them); each
# part does one job. No coroutine, future or task is made on the plain path.

from headgate_engine.link.attempt cimport UpstreamAttempt
from headgate_engine.link.core cimport RequestCore

cdef class Exchange(RequestCore):
    cdef UpstreamAttempt attempt     # None: the backend answers by itself, or none has begun
    cdef bint late                   # it has its answer, and ends when the part of its body that has come is counted

    cdef bint _retry(self) except -1
    cdef int _finish(self, int ending) except -1
