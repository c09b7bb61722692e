# What the events of a streamed reply say: the text deltas of each choice, repetitions of whole texts, and ends of texts.

from headgate_engine.guard.numbers cimport Clean
from headgate_engine.peek.delta cimport DeltaPeek

cdef enum FrameForm:
    IN_PLACE = 0               # the data is a part of the frame's bytes, and offsets are those of the frame
    IN_LINES                   # the data has several lines
    IN_A_FRAME                 # a frame of an Amazon event stream
    IN_A_MESSAGE               # a message of a WebSocket

cdef class TextPiece:
    # A string of a frame that continues the text of a choice.
    cdef ChoiceText choice
    cdef Py_ssize_t low, high  # its part of the choice's text
    cdef Py_ssize_t start, stop          # the string, quotes included
    cdef bytes text            # decoded; None once the masks have it

cdef class StreamFrame:
    # One block of the stream. Offsets are those of `data`.
    cdef bytes raw
    cdef bytes data            # `raw` itself, or the event's data without its frame
    cdef int form              # FrameForm
    cdef list pieces           # [TextPiece]
    cdef list wholes           # (start, stop): strings that repeat the whole text
    cdef list marks            # (start, stop, raw JSON): replacements if the frame changes
    cdef list ends             # the ChoiceText that are complete after this frame
    cdef bint over             # a new reply begins after this frame

cdef class ChoiceText:
    # The text of one choice. Offsets count the bytes of the whole text.
    cdef Py_ssize_t length     # received so far
    # -- judging
    cdef bytes tail            # last bytes of the judged text
    cdef list fresh            # pieces that are not judged yet
    # -- masking
    cdef bytes text            # the text from `base` on, for scans
    cdef Py_ssize_t base, settled
    cdef Clean clean           # in `text`
    cdef Py_ssize_t start      # in `text`: where the next scan begins, behind a place that was clean
    cdef Py_ssize_t edited     # end of the last edit
    cdef bint closed, changed
    cdef list edits            # (low, high, replacement) of the settled text

cdef class StreamTexts:
    cdef str format
    cdef bint judged           # pieces are kept for guards as well
    cdef DeltaPeek peek        # recognises plain text deltas; None: no such format
    cdef dict choices          # key -> ChoiceText
    cdef Py_ssize_t fresh_bytes          # of all pieces that are not judged yet
    # Reads the JSON of `n` bytes at `at` in the frame's data. What is no JSON says nothing.
    cdef int read(self, StreamFrame frame, Py_ssize_t at, Py_ssize_t n) except -1
    cdef bint _delta(self, StreamFrame frame, Py_ssize_t at, Py_ssize_t n) except -1
    cdef ChoiceText _choice(self, object key)
    cdef int _says(self, StreamFrame frame, object key, Py_ssize_t start, Py_ssize_t stop) except -1
