# Values that are kept for requests for which expressions have equal values.

from headgate_engine.context.request cimport RequestContext

cdef class KeptValue:
    cdef object value
    cdef double until, renew       # seconds of the clock: until when it is good, and from when it is renewed

cdef class KeyedValues:
    cdef tuple programs            # Program: what makes a key
    cdef dict kept                 # key -> KeptValue, the most recently used one last
    cdef KeptValue newest          # the last of them, or one that is gone
    cdef Py_ssize_t most
    cdef object clock              # a function without arguments; None: CLOCK_MONOTONIC
    cdef double now(self) except? -1
    cdef object key_of(self, RequestContext ctx)
