# Answers in another format than the client's: read whole or event by event, and told anew.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.llm.answer_body cimport AnswerBody
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.target cimport FormatRoute
from headgate_engine.llm.translate.converter cimport StreamConverter
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.coding cimport Decoder

cdef class TranslatedTap(ResponseTap):
    cdef object work          # headgate.backend.llm.translation.Translation
    cdef LlmCall call
    cdef StreamConverter stream          # None: the body is read whole
    cdef AnswerBody kept
    cdef bytes body           # of an answer that is translated beside the loop
    cdef MessageHead head
    cdef str coding           # of the provider's answer, None: none
    cdef Decoder decoder      # of a stream in a coding
    cdef RequestContext ctx
    cdef bytes _end_of(self, bytes body)
    cdef int _begun(self) except -1
    cdef int _type_events(self, MessageHead head) except -1
    cdef bint _is_long(self, bytes body) except -1
    cdef int _untold(self) except -1
    cdef int _answer(self, tuple found, ByteBuffer out) except -1
    cdef int _decode(self, bytes data, ByteBuffer out) except -1
    cdef int _tell(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1

cdef TranslatedTap translated_tap(LlmCall call, FormatRoute format_route)
