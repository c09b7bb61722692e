# The items of a list in a JSON text, as spans.

cdef class Item:
    cdef readonly bytes raw            # the whole item as it stands in the list
    cdef readonly str name             # None: the item has none, or is no object
    cdef readonly bint has_meta        # it has a member `_meta`
    cdef readonly bint odd             # its name stands twice
    cdef Py_ssize_t start, stop        # of the raw name in `raw`, quotes included
