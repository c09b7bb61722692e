# The request body on its way in, as far as it does not go straight upstream: what a step or the backend waits for, and what
# comes while nobody can take it. The bytes are in the request's collector, which is made for the first of them.

from headgate_engine.link.collector cimport BodyCollector
from headgate_engine.link.core cimport RequestCore

cdef BodyCollector collector_of(RequestCore request)
# A piece that nobody sends on.
cdef int collect(RequestCore request, const char* p, Py_ssize_t n) except -1
# The client has sent all of it.
cdef int body_ended(RequestCore request) except -1
# A step reads the body (ctx.body_limit bytes of it); True: that is there. Otherwise body_came() is called when it is.
cdef bint await_body(RequestCore request) except -1
# The backend reads all of it: body_complete() is called now or later, unless it is too long.
cdef int await_whole_body(RequestCore request) except -1
# The answer was there before the body was looked at, and a part of that may lie behind the head, in the same read.
cdef bint answered_early(RequestCore request) noexcept
