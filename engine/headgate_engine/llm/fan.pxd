# Several choices of one answer at a provider that makes one at a time: the request goes out once for each of them, and what
# comes back is one answer in the client's format.
#
# To the request (link/exchange) all of it is one call: FanPool stands in the place of the provider's pool, and FanStream
# is the stream that it hands out. FanTap tells the usage of all.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.contract cimport ClientStream, ResponseSink
from headgate_engine.link.pool cimport Pool
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.target cimport FormatRoute
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class FanPool(Pool):
    cdef Pool real
    cdef LlmCall call
    cdef FormatRoute route
    cdef FanTap tap
    cdef int64_t limit                   # bytes of one whole answer of the provider
    cdef int count

cdef class FanStream(ClientStream):
    cdef FanPool fan
    cdef ResponseSink sink               # None: the request has let go of it
    cdef MessageHead head
    cdef ByteBuffer body
    cdef list calls                      # link.client.ClientCall, one for each choice
    cdef object task
    cdef list parts                      # tasks, one for each call
    cdef object failure                  # the first exception of one of them
    cdef object resumed                  # future: the client reads on; None: it does
    cdef object good                     # future: the heads of all streams have come, and none is an error
    cdef int heads                       # that have
    cdef object merged                   # headgate.dialect.llm.choices.MergedStream
    cdef bint begun                      # the head has been handed on
    cdef int _give_up(self) except -1
    cdef int _begin(self, int status, bytes kind, int64_t length) except -1
    cdef int _pass_on(self, bytes data) except -1
    cdef int _end(self) except -1

cdef class FanTap(ResponseTap):
    cdef object stream_error
    cdef LlmCall call
    cdef RequestContext ctx
    cdef bint events                     # the answer is a stream
    cdef str broken                      # why a stream ended early; its last event says so
    cdef list counts                     # of each choice (Translation.usage), None: nothing was counted
    cdef int _count(self) except -1

# What carries a call in the place of the provider's pool. `limit`: bytes of one whole answer.
cdef FanPool fan_pool(Pool real, LlmCall call, FormatRoute route, int count, int64_t limit)
