# Answers that guards look at: whole ones before any of it goes on, streams in windows.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.llm.answer_body cimport AnswerBody
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer

cdef class GuardTap(ResponseTap):
    cdef ResponseTap inner     # what makes the answer one in the client's format, None: nothing has to
    cdef object call           # headgate.backend.llm.guards.compile.GuardCall
    cdef str format
    cdef object stream         # GuardedStream, None: the answer is read whole
    cdef bint passive          # nothing of this answer is guarded
    cdef bint ended, closed    # the upstream has ended; the stream was told so
    cdef ByteBuffer piece      # what the inner tap gave
    cdef AnswerBody kept       # a whole body, or what came while a guard was asked
    cdef MessageHead head
    cdef int _mirror(self) except -1
    cdef int _through(self, bytes data, ByteBuffer out) except -1
    cdef int _took(self, object found, ByteBuffer out) except -1
    cdef int _close(self, ByteBuffer out) except -1
    cdef int _translated(self, object found, ByteBuffer out) except -1
    cdef bytes _body(self)

# The tap around another one that guards the answer, keeps it, or reads what expressions ask for; that one where none of it
# is wanted.
cdef ResponseTap guard_tap(LlmCall call, ResponseTap inner, Py_ssize_t limit)
