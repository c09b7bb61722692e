# Answers that expressions ask about: what the client gets is read on its way. The tap stands around all others, so masks,
# translation and decoding are done, and all formats are those of clients.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.llm.answer_body cimport AnswerBody
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.content_capture cimport CapturedAnswer
from headgate_engine.llm.outer_tap cimport OuterTap
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.coding cimport Decoder

cdef class CaptureTap(OuterTap):
    cdef LlmCall call
    cdef bint counts           # the answer tells a count, nothing else of it is wanted
    cdef MessageHead head
    cdef CapturedAnswer answer         # None: nothing (more) is read
    cdef object decoder        # SseDecoder or EventStreamDecoder of a stream, None: the answer is whole
    cdef Decoder coding        # a whole answer goes on in its coding: a copy is decoded
    cdef AnswerBody kept       # of a whole answer
    cdef int _take(self, const char* p, Py_ssize_t n) except -1
    cdef int _keep(self, const char* p, Py_ssize_t n) except -1
    cdef int _events(self, const char* p, Py_ssize_t n) except -1

# The tap around another one, or that one where no expression asks.
cdef ResponseTap capture_tap(LlmCall call, ResponseTap inner, Py_ssize_t limit)
