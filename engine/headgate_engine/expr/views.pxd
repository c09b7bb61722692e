# Variables of expressions: each reads one thing of the request when it is evaluated, and nothing before.

from headgate_engine.context.headers cimport MessageHead

cdef class HeaderView:
    cdef MessageHead head
    cdef int form              # Form bits
