# What is said in requests and answers, for expressions: `llm.prompt`, `llm.completion`, `llm.toolCalls`. Nothing is read
# unless an expression of the configuration asks for it.

from headgate_engine.context.request cimport RequestContext

cdef class CaptureOptions:
    # What the expressions of a configuration ask for.
    cdef readonly bint prompt, answer, count

cdef class CapturedAnswer:
    # What one answer says, as it comes. `limit`: characters of text and bytes of a whole body that are kept.
    cdef readonly str format
    cdef readonly bint ended             # all of it was read
    cdef Py_ssize_t limit, length
    cdef bytes body                      # a whole answer, not read yet
    cdef dict texts                      # choice -> pieces of its text
    cdef dict calls                      # key -> [id, name, pieces of the arguments or their value]
    cdef int whole(self, bytes body) except -1
    # One event of a stream. name: as the framing tells it, "" when it does not.
    cdef int event(self, str name, bytes data) except -1
    cdef int _read(self) except -1
    cdef int _add(self, object choice, object text) except -1

# [{role, content}] of a body in a client's format; None when it is no object.
cdef list prompt_of(str format, bytes body)
# The count that an answer to a counting request tells, -1 when it does not.
cdef object count_of(bytes body)
# The request's prompt as the provider gets it, but in the client's format; None where there is none.
cdef list prompt_now(RequestContext ctx)
