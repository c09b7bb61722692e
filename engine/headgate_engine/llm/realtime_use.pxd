# What a realtime conversation of a virtual key uses: reserved for each answer, and settled with what its `response.done` tells.

from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.peek.json cimport UsagePeek
from headgate_engine.steps.virtual_key cimport KeyUse

from libc.stdint cimport int64_t

cdef enum:
    # Answers that a client may ask for before they are done.
    MOST_ASKED = 64
    # Answers that are priced one by one; the tokens of later ones are priced with those of the last one.
    MOST_PARTS = 4096

cdef class RealtimeUse:
    cdef RequestContext ctx
    cdef LlmCall call
    cdef KeyUse use
    cdef UsagePeek peek
    cdef int64_t prompt              # tokens of the prompt of the next answer, at most
    cdef int64_t bound               # tokens of an answer whose length its request does not say
    cdef readonly int64_t assumed    # the same before the session says anything
    cdef list asked                  # (tokens at most, name of the event) of answers that were asked for and are not done
    cdef bint under_way              # an answer has begun
    cdef readonly bint over          # limits have no more
    cdef bint cover(self) except -1
    cdef bint take(self, int64_t tokens, int64_t picos) except -1
    cdef int settle(self, TokenUsage usage) except -1
