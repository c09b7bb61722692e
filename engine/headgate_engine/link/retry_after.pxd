# How long a server that refuses for load wants to be left alone.

from headgate_engine.context.headers cimport MessageHead

from libc.stdint cimport int64_t

cdef enum:
    NO_HINT = -1

# Nanoseconds; NO_HINT when it does not say.
cdef int64_t retry_after_ns(MessageHead head) except? -1
