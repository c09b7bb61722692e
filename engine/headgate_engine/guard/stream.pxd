# Guards on streamed replies: events wait until guards have judged their text, and until no match can begin in it any
# more. Sans-IO: takes bytes and returns bytes; the caller calls the guards.

from headgate_engine.guard.scan cimport Scanner
from headgate_engine.guard.stream_texts cimport ChoiceText, StreamFrame, StreamTexts, TextPiece
from headgate_engine.llm.eventstream cimport EventStreamDecoder
from headgate_engine.sse.decode cimport SseDecoder

cdef class StreamGuard:
    cdef readonly str format
    cdef readonly Py_ssize_t window, overlap, limit
    cdef readonly bint blocked, ended
    cdef readonly Py_ssize_t masks       # number so far
    cdef bint judged           # guards inspect this stream
    cdef SseDecoder decoder
    cdef EventStreamDecoder frames       # of clients of Bedrock; None: the stream has server-sent events
    cdef StreamTexts content
    cdef Scanner scanner       # of the masks, None: no masks
    cdef list waiting          # Frames that wait for guards
    cdef Py_ssize_t waiting_bytes
    cdef int judging           # number of frames that guards are judging, -1: none
    cdef list held             # Frames that wait for masks
    cdef Py_ssize_t held_bytes
    cdef list out
    cdef StreamFrame _block(self)
    cdef StreamFrame _framed(self)
    cdef int _take_block(self, StreamFrame frame) except -1
    cdef int _pass(self, StreamFrame frame) except -1
    cdef int _settle(self, bint all_of_it) except -1
    cdef int _settle_one(self, ChoiceText choice, bint all_of_it) except -1
    cdef Py_ssize_t _behind(self, ChoiceText choice, Py_ssize_t n)
    cdef int _watch(self, ChoiceText choice, Py_ssize_t n) except -1
    cdef bint _find(self, ChoiceText choice, Py_ssize_t stop, Py_ssize_t* safe, bint by_cut) except -1
    cdef Py_ssize_t _next_start(self, ChoiceText choice, Py_ssize_t safe, bint by_cut, bint all_of_it)
    cdef int _cut_off(self, ChoiceText choice, Py_ssize_t settled) except -1
    cdef int _release(self) except -1
    cdef bytes _masked(self, StreamFrame frame)
