# JSON-RPC 2.0 messages as the gateway handles them: told apart, re-labelled and cut up by offsets.

from headgate_engine.peek.json cimport RpcPeek

cdef class Message:
    cdef readonly object kind          # Kind
    cdef readonly bytes text           # as received
    cdef readonly str method           # None: there is none
    cdef readonly bytes raw_id         # None: there is none
    cdef readonly bint is_error        # an error response
    cdef RpcPeek found
    cdef bytes _between(self, Py_ssize_t start, Py_ssize_t stop, bytes piece)
    cdef int _name_field(self) except -1

cpdef bytes quoted(str text)
