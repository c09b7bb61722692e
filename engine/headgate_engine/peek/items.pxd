# The items of a list in a JSON text, as spans.

from libc.stdint cimport uint8_t

cdef class Item:
    cdef readonly bytes raw            # the text of the item in the list
    cdef readonly str name             # None if the item has no name or is not an object
    cdef readonly bint has_meta        # it has a member `_meta`
    cdef readonly bint odd             # it has two names
    cdef Py_ssize_t start, stop        # span of the raw name in `raw`, quotes included

# Returns the offset behind the value at `at` of a text of `n` bytes that has passed the scan of peek.scan.
cdef Py_ssize_t value_end(const uint8_t* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil
