# Guards on streamed replies: events wait until what they say has been judged, and until no mask can begin in it any more.
# Sans-IO: bytes in, bytes out; whoever drives it asks the judges.

cdef class Frame:
    # One block of the stream. Offsets are those of `data`, which lies in `raw` at `data_at` (-1: in several lines,
    # -2: a message of a WebSocket).
    cdef bytes raw, data
    cdef Py_ssize_t data_at
    cdef list pieces           # (ChoiceText, low, high, start, stop): that part of what a choice says, in the string at start..stop
    cdef list wholes           # (start, stop): strings that repeat what was said
    cdef list marks            # (start, stop, raw JSON): goes with a change
    cdef list ends             # ChoiceText that are complete behind this frame
    cdef bint over             # behind it a new reply begins

cdef class ChoiceText:
    # What one choice says. Offsets count bytes of all of it.
    cdef Py_ssize_t length     # that has come
    # -- judging
    cdef bytes tail            # last bytes that were judged
    cdef list fresh            # pieces that were not
    # -- masking
    cdef bytes text            # kept from `base` on, for scans
    cdef Py_ssize_t base, settled
    cdef bint closed, changed
    cdef list edits            # (low, high, replacement), settled

cdef class StreamGuard:
    cdef readonly str format
    cdef readonly Py_ssize_t window, overlap, limit
    cdef readonly bint blocked, ended
    cdef readonly Py_ssize_t masks       # made so far
    cdef bint judged           # somebody judges
    cdef object decoder        # sse.decode.SseDecoder
    cdef object scanner        # guard.scan.Scanner of the masks, None: none
    cdef dict choices          # key -> ChoiceText
    cdef list waiting          # Frame, in front of the judges
    cdef Py_ssize_t fresh_bytes, waiting_bytes
    cdef int judging           # frames that a judge has before it, -1: none
    cdef list held             # Frame, in front of the masks
    cdef Py_ssize_t held_bytes
    cdef list out
    cdef int _event(self, bytes raw, object event) except -1
    cdef int _read(self, Frame frame) except -1
    cdef ChoiceText _choice(self, object key)
    cdef int _says(self, Frame frame, object key, Py_ssize_t start, Py_ssize_t stop) except -1
    cdef int _pass(self, Frame frame) except -1
    cdef int _settle(self, bint all_of_it) except -1
    cdef int _settle_one(self, ChoiceText said, bint all_of_it) except -1
    cdef int _release(self) except -1
    cdef bytes _masked(self, Frame frame)
