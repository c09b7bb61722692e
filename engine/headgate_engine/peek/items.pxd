# The items of a list in a JSON text, as spans.

cdef class Item:
    cdef readonly bytes raw            # the text of the item in the list
    cdef readonly str name             # None if the item has no name or is not an object
    cdef readonly bint has_meta        # it has a member `_meta`
    cdef readonly bint odd             # it has two names
    cdef Py_ssize_t start, stop        # span of the raw name in `raw`, quotes included
