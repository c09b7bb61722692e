# A response that a tap counts, translates or guards (plan/tap): one whose head waits for its first event, or that is read whole,
# and guards that are asked about it. Made for such a response alone.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.core cimport RequestCore
from headgate_engine.link.pipe cimport ResponsePipe
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer

cdef class TappedPipe(ResponsePipe):
    cdef ResponseTap tap
    cdef ByteBuffer out              # what the tap made of the bytes that came
    cdef bint ended                  # the backend has sent all
    cdef MessageHead trailers        # of that end
    cdef bint keeping                # the stream has begun, but shown no words: another backend may be asked
    cdef bint released               # it was kept back long enough
    cdef bint finished               # the tap has seen the end

    cdef bint _begin(self, RequestCore request) except -1
    cdef int _fed(self, RequestCore request) except -1
    cdef int _end(self, RequestCore request) except -1
    cdef int _break_off(self, RequestCore request, str detail) except -1
    cdef bint _tells_words(self, RequestCore request) noexcept
    cdef bint _keep_back(self, RequestCore request) except -1
    cdef int _release(self, RequestCore request) except -1
    cdef int _last(self, RequestCore request) except -1
    cdef int _ask(self, RequestCore request) except -1

# PASSING where the tap finds nothing to look at in a response with that head.
cdef ResponsePipe tapped_pipe(ResponseTap tap, RequestCore request, MessageHead head)
