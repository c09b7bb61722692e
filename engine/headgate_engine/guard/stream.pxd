# Guards on streamed replies: events wait until guards have judged their text, and until no match can begin in it any
# more. Sans-IO: takes bytes and returns bytes; the caller calls the guards.

cdef class StreamFrame:
    # One block of the stream. Offsets are those of `data`, which is in `raw` at `data_at` (-1: in several lines, -2: a
    # message of a WebSocket).
    cdef bytes raw, data
    cdef Py_ssize_t data_at
    cdef list pieces           # (ChoiceText, low, high, start, stop): its low..high is the string at start..stop
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
    cdef bint closed, changed
    cdef list edits            # (low, high, replacement) of the settled text

cdef class StreamGuard:
    cdef readonly str format
    cdef readonly Py_ssize_t window, overlap, limit
    cdef readonly bint blocked, ended
    cdef readonly Py_ssize_t masks       # number so far
    cdef bint judged           # guards inspect this stream
    cdef object decoder        # sse.decode.SseDecoder
    cdef object scanner        # guard.scan.Scanner of the masks, None: no masks
    cdef dict choices          # key -> ChoiceText
    cdef list waiting          # Frames that wait for guards
    cdef Py_ssize_t fresh_bytes, waiting_bytes
    cdef int judging           # number of frames that guards are judging, -1: none
    cdef list held             # Frames that wait for masks
    cdef Py_ssize_t held_bytes
    cdef list out
    cdef int _event(self, bytes raw, object event) except -1
    cdef int _read(self, StreamFrame frame) except -1
    cdef ChoiceText _choice(self, object key)
    cdef int _says(self, StreamFrame frame, object key, Py_ssize_t start, Py_ssize_t stop) except -1
    cdef int _pass(self, StreamFrame frame) except -1
    cdef int _settle(self, bint all_of_it) except -1
    cdef int _settle_one(self, ChoiceText said, bint all_of_it) except -1
    cdef int _release(self) except -1
    cdef bytes _masked(self, StreamFrame frame)
