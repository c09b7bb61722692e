# What stands between a request and its client: it gets the request body before the request does, and the response before
# the client does. A request has none, or a chain of them: the first is next to the client (`RequestCore.filter`), the last
# is what the request takes for its client (`RequestCore.client`).

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.contract cimport ServerStream

cdef class StreamFilter(ServerStream):
    cdef ServerStream outer          # the next on the way to the client
    cdef StreamFilter inner          # the next on the way to the backend; None: the request itself
    cdef bint begun                  # the response has gone on to `outer`
    cdef bint ending                 # the request has ended its response, and waits until the client has all of it
    cdef bint owes_headers           # headers that policies have collected are to be put on the response when it leaves

    # The request body as it comes from the client, or from the filter before.
    cdef int request_data(self, const char* p, Py_ssize_t n) except -1
    cdef int request_end(self, MessageHead trailers) except -1
    # The client takes more.
    cdef int client_writable(self) except -1
    # Everything that the request has sent to its client has left this filter and those behind it.
    cdef bint drained(self) noexcept
    # The response may still be changed by this filter or one behind it.
    cdef bint changes_response(self) noexcept
    # An answer of the gateway's own is next: it passes, and what waits is dropped. Goes on to those behind.
    cdef int bypass(self) except -1
    # The request is over: lets go of it.
    cdef int close(self) except -1
