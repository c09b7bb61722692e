# The client's half of stream translation for legacy text completions.

from headgate_engine.llm.translate.writers cimport Writer

cdef class TextWriter(Writer):
    cdef bint include_usage
    cdef bytes head
    cdef str echoed                      # the prompt, which the client wants in front of the text; "": it does not
    cdef Py_ssize_t offset               # where the next token with a probability begins
    cdef int _text(self, const char* p, Py_ssize_t n) except -1
