# What an A2A request is, and the step that says so in the log.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport Step

from libc.stdint cimport int64_t

cdef enum A2aKind:
    A2A_OTHER = 0          # plain HTTP
    A2A_CARD = 1           # asks for the agent card
    A2A_CALL = 2           # JSON-RPC
    A2A_REST = 3           # HTTP+JSON: the path says the method

# Returns the kind of a request (A2aKind). Other paths than that of the head may lead to the card as well: client_path.
cdef int kind_of(MessageHead head, bytes client_path) except -1
# Returns the path as the client sent it, without its query.
cdef bytes client_path_of(RequestContext ctx)
# Returns how many bytes of a path are its well-known end, which leads to an agent card; 0: it does not.
cdef Py_ssize_t card_suffix(const char* path, Py_ssize_t n) noexcept nogil
# Puts a field into the request's log line, in the place of an earlier attempt's.
cdef int note(RequestContext ctx, str key, object value) except -1

cdef class A2aStep(Step):
    cdef int64_t max_bytes
    cdef bint _waits(self, RequestContext ctx) except -1
