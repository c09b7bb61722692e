# Answers whose ids are sealed on the way to the client, whole or streamed, JSON or events of it.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer

cdef enum:
    # Longest name of a member that is looked at, and longest id that is kept back to be sealed.
    MAX_NAME = 40
    MAX_ID = 256

cdef class IdScanner:
    # Reads JSON, or events of JSON, byte by byte as it comes. What is no id goes on unchanged.
    cdef object ids                      # seal(value, place, origin)
    cdef bytes place
    cdef bytes origin                    # of the gateway, as the client knows it: `https://host`
    cdef bytes prefix, strip             # of the provider's paths, and what clients' paths have in its place
    cdef bint google                     # names and addresses are ids, too
    cdef bint quoted, escaped            # within a string; behind a backslash in it
    cdef bint keeps                      # this string may be an id: it is kept back
    cdef bint names_id, in_list          # the last name is that of an id; within an array of ids
    cdef char name[MAX_NAME]             # the last string outside of arrays, if it is short
    cdef int name_len                    # -1: it is too long
    cdef ByteBuffer kept
    cdef int feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1
    cdef int end(self, ByteBuffer out) except -1
    cdef int _value(self, ByteBuffer out) except -1

cdef class IdTap(ResponseTap):
    cdef ResponseTap inner               # None: nothing else looks at the answer
    cdef IdScanner scanner               # None: the answer has no ids to seal
    cdef ByteBuffer piece
    cdef object ids
    cdef bytes place
    cdef bytes prefix, strip             # as in IdScanner
    cdef int _mirror(self) except -1
    cdef int _location(self, MessageHead head) except -1
    cdef int _uploads(self, MessageHead head, const char* name, Py_ssize_t n, bytes origin) except -1

cdef IdTap id_tap(ResponseTap inner, object ids, bytes place, bytes prefix, bytes strip)
