# One answer of several calls to a provider: for choices where it makes one at a time, for lists of texts to embed where it
# takes fewer. What comes back is one answer in the client's format.
#
# To the request (link/exchange) all of it is one call, with one outcome for retries, health and metrics: FanPool stands in
# the place of the provider's pool, and FanStream is the stream that it hands out. FanTap tells the usage of all.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.client cimport ClientCall
from headgate_engine.link.contract cimport ClientStream, ResponseSink
from headgate_engine.link.pool cimport Pool
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.target cimport FormatRoute
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class FanPool(Pool):
    cdef Pool real
    cdef RequestContext ctx
    cdef LlmCall call
    cdef FormatRoute route
    cdef FanTap tap
    cdef int64_t limit                   # bytes of all whole answers of the provider
    cdef tuple others                    # bodies of the calls behind the first; (): all calls have the same
    cdef int count

cdef class FanStream(ClientStream):
    cdef FanPool fan
    cdef ResponseSink sink               # None: the request has let go of it
    cdef MessageHead head
    cdef ByteBuffer body
    cdef list calls                      # link.client.ClientCall, or None: it has not begun; one for each part
    cdef object task
    cdef list tasks                      # that make the calls, one after the other
    cdef int64_t left                    # of the limit
    cdef object failure                  # the first exception of one of them
    cdef object resumed                  # future: the client reads on; None: it does
    cdef object good                     # future: the heads of all streams have come, and none is an error
    cdef int heads                       # that have
    cdef object merged                   # headgate.dialect.llm.choices.MergedStream
    cdef bint begun                      # the head has been handed on
    cdef int _give_up(self) except -1
    cdef int _begin(self, int status, bytes kind, int64_t length) except -1
    cdef ClientCall _told_by(self, int status)
    cdef int _pass_on(self, bytes data) except -1
    cdef int _end(self) except -1

cdef class FanTap(ResponseTap):
    cdef object stream_error
    cdef LlmCall call
    cdef RequestContext ctx
    cdef bint events                     # the answer is a stream
    cdef str broken                      # why a stream ended early; its last event says so
    cdef list counts                     # of each call (Translation.usage), None: nothing was counted
    cdef int _count(self) except -1

# What carries a call in the place of the provider's pool.
cdef FanPool fan_pool(Pool real, RequestContext ctx, LlmCall call)
