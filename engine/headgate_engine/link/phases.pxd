# The way of a request from its head to its backend: picks listener, route and backend, and runs the steps in between.

from headgate_engine.link.core cimport RequestCore

# Goes on from phase to phase until one has to wait or the request is answered.
cdef int advance(RequestCore request) except -1
# Does what the backend has chosen (link.backend.Dispatch).
cdef int dispatched(RequestCore request, int choice) except -1
# Runs steps of the request; one that raises is a fault of ours: 500, a line in the log, and nothing goes upstream.
cdef int guarded_steps(RequestCore request, tuple steps) except -1
