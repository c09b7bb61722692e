# Taps that stand around another one: what they do not change themselves is that of the inner tap.

from headgate_engine.plan.tap cimport ResponseTap

cdef class OuterTap(ResponseTap):
    cdef ResponseTap inner
    # Shows what the inner tap shows, after each call of it. `limit` is not shown: some taps have a bound of their own.
    cdef int _mirror(self) except -1
