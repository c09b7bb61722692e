# The providers' halves of stream translation for the clouds' own formats.

from headgate_engine.llm.translate.readers cimport EventReader
from headgate_engine.wire.buffer cimport ByteBuffer

cdef class GeminiReader(EventReader):
    cdef Py_ssize_t calls
    cdef str response_id
    cdef ByteBuffer spoken               # the text so far: places of citations are counted in its bytes
    cdef dict code                       # that the vendor runs, None: none
    cdef bint grounded                   # citations were told
    cdef int _tell_code(self, dict result) except -1
    cdef int _ground(self, dict candidate) except -1
    cdef ByteBuffer last_usage           # counts that are not read yet, as JSON
    cdef int _count(self, object usage) except -1
    cdef int _counts(self, const char* p, Py_ssize_t n) except -1
    cdef int _spoke(self, const char* p, Py_ssize_t n) except -1
    cdef int _part(self, dict part) except -1

cdef class ConverseReader(EventReader):
    cdef list cited                      # citations of the block being read
    cdef Py_ssize_t block_from           # where its text begins
    cdef int _delta(self, dict event) except -1
