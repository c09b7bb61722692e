# What a service of Envoy's protocols wants done to fields (envoy.config.core.v3.HeaderValueOption, ext_proc's HeaderMutation).

from headgate_engine.context.headers cimport MessageHead

cdef struct ReadHeader:
    # A HeaderValue, borrowed from the message.
    const char* name
    const char* text
    const char* raw
    Py_ssize_t name_size, text_size, raw_size

cdef int bad(str what) except -1            # ValueError

cdef class HeaderEdits:
    # (HeaderEdit, name in lower case, value): what may not be done is left out; pseudo-header fields and `host` are as they came.
    cdef list edits
    cdef list removed            # names in lower case

    # Read one HeaderValueOption, or HeaderValue. `usual`: what is done where an option does not say. ValueError for what is none.
    cdef int read_option(self, const char* p, Py_ssize_t n, int usual) except -1
    cdef int read_value(self, const char* p, Py_ssize_t n, int action) except -1
    cdef int want(self, int action, ReadHeader* header) except -1
    cdef int read_removed(self, const char* p, Py_ssize_t n) except -1
    cdef int read_mutation(self, const char* p, Py_ssize_t n) except -1
    cdef bint touches_start(self) noexcept

# Do what is wanted to a head. `start`: what stands in for fields of the start line, in FieldsOf.
cdef int apply_edits(HeaderEdits wanted, MessageHead head, int side) except -1
cdef int apply_edit(MessageHead head, int action, bytes name, bytes value) except -1

cdef enum FieldsOf:
    OF_REQUEST = 0
    OF_RESPONSE = 1
    OF_TRAILERS = 2
