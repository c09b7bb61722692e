# Spans of a request that is sampled: what happens on its way goes into log.spans. Most requests are not sampled, and have
# nothing of this.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.core cimport RequestCore
from headgate_engine.link.observer cimport RequestObserver
from headgate_engine.log.spans cimport RequestSpans

cdef class SpanObserver(RequestObserver):
    cdef RequestObserver inner          # who watches beside it (/debug/trace); None: nobody
    cdef RequestSpans spans
    cdef object calls                   # NestedCalls
    cdef int note_trailers(self, MessageHead head, MessageHead trailers) except -1

# What calls on behalf of a request have in link.client.SPANS; None: it is not sampled.
cdef object calls_of(RequestContext ctx)
# Puts a request into a trace: the client's, or a new one. Its head says so to whoever it goes on to.
cdef int begin_trace(RequestCore request) except -1
