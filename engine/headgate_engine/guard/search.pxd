# Applies a scanner to all texts of a body, without the GIL if all rules are built in, and writes masks into the body.

from headgate_engine.guard.transcript cimport Piece, BodyTexts

cdef enum:
    # Replacements that are not in `tokens`.
    T_NOTHING = -1
    T_EMPTY_LIST = -2
    T_NULL = -3

cdef struct Edit:
    # Replacement of start..stop by a token. The offsets are those of a run's text, or, with `piece`, of that piece's
    # text.
    Py_ssize_t start, stop
    int token, piece

cdef struct Change:
    # Replacement of bytes of the body.
    int start, stop, token

cdef struct Place:
    # Span of a piece in the text of its run.
    Py_ssize_t low, high

cdef class Patch:
    # Collects the changes of a body; all other bytes stay.
    cdef list tokens           # replacements, already valid inside JSON strings
    cdef Edit* edits           # of one run, ascending
    cdef Edit* parts           # the same edits by piece
    cdef Place* places
    cdef Change* changes
    cdef int edit_count, edit_room, part_count, part_room, place_room, change_count, change_room
    cdef bint raw              # JSON outside of strings has changed
    cdef int edit(self, Py_ssize_t start, Py_ssize_t stop, int token) except -1 nogil
    cdef int part(self, int piece, Py_ssize_t start, Py_ssize_t stop, int token) except -1 nogil
    cdef int change(self, int start, int stop, int token) except -1 nogil
    # Turns the edits of a run into changes of the body.
    cdef int run(self, BodyTexts t, int index) except -1 nogil
    cdef int locate(self, BodyTexts t, int first, int count) except -1 nogil
    cdef int divide(self, int count) except -1 nogil
    cdef int put(self, BodyTexts t, Piece* piece, Edit* parts, int count, Py_ssize_t length) except -1 nogil
    cdef int encode(self, BodyTexts t, Piece* piece, Edit* parts, int count) except -1
    cdef bytes done(self, BodyTexts t)
