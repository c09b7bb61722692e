# Bedrock's own streams (application/vnd.amazon.eventstream), passed on frame by frame: read for usage, and a frame that is
# cut or broken never reaches the client. Its other answers are read as any native ones.

from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.eventstream cimport EventStreamDecoder
from headgate_engine.llm.native cimport NativeTap
from headgate_engine.llm.target cimport FormatRoute

cdef class BedrockTap(NativeTap):
    cdef EventStreamDecoder frames       # None: the answer is no such stream
    cdef bint begun                      # the first frame has come
    cdef bint unfinished                 # what has come wants a terminal event
    cdef int _frame(self, EventStreamDecoder frame) except -1
    cdef int _model_event(self, bytes told) except -1

cdef BedrockTap bedrock_tap(LlmCall call, FormatRoute format_route)
