# The providers' halves of stream translation for the clouds' own formats.

from headgate_engine.llm.translate.readers cimport EventReader

cdef class GeminiReader(EventReader):
    cdef Py_ssize_t calls
    cdef str response_id
    cdef int _count(self, object usage) except -1
    cdef int _part(self, dict part) except -1

cdef class ConverseReader(EventReader):
    cdef int _delta(self, dict event) except -1
