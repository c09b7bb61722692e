# JSON-RPC 2.0 messages: the type of a message, and spans of its parts.

from headgate_engine.peek.json cimport RpcPeek

cdef class RpcMessage:
    cdef readonly object kind          # Kind
    cdef readonly bytes text           # as received
    cdef readonly str method           # None: there is none
    cdef readonly bytes raw_id         # None: there is none
    cdef readonly bint is_error        # an error response
    cdef RpcPeek found
    cdef bytes _between(self, Py_ssize_t start, Py_ssize_t stop, bytes piece)
    cdef int _name_field(self) except -1

cpdef bytes quoted(str text)
# Returns the message that `text` holds. Raises NotAMessage.
cdef RpcMessage message_of(bytes text)

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    void *memmem(const void *, size_t, const void *, size_t);
    #endif
    """
    void* memmem(const void* haystack, size_t n, const void* needle, size_t m) nogil

cdef inline bint has_text(bytes text, const char* part, Py_ssize_t n):
    """Return whether a text contains a part. `part in text` is slower: it first tries to read the part as a number."""
    return memmem(<const char*>text, len(text), part, n) != NULL
