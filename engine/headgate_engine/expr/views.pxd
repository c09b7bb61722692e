# Variables of expressions. Each one reads a single property of the request, and only when it is evaluated.

from headgate_engine.context.headers cimport MessageHead

cdef class HeaderFields:
    cdef MessageHead head
    cdef int form              # Form bits
