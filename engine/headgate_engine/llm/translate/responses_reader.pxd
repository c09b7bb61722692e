# The half of stream translation for providers that speak Responses.

from headgate_engine.llm.translate.readers cimport EventReader

cdef class ResponsesReader(EventReader):
    cdef set with_arguments
    cdef set items                       # output_index of those that were told
    cdef Py_ssize_t base                 # where the text of the message being read begins
    cdef Py_ssize_t part_base            # the same of its part
    cdef bint thought                    # the summary being read had deltas
    cdef int _rest(self, str text, bint refusal) except -1
    cdef int _message(self, dict item) except -1
    cdef int _output(self, dict response) except -1
    cdef int _item(self, dict event, bint done) except -1
    cdef int _end(self, str kind, dict event) except -1
