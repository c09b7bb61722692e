# A request that a run sends again and again, made ready for both protocols.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport uint32_t, uint64_t

# What is read of its answer.
cdef enum Judgement:
    JUDGE_STATUS = 0      # the status
    JUDGE_STREAM = 1      # and the events of a stream of an LLM
    JUDGE_RPC = 2         # and a JSON-RPC response, as JSON or as an event

cdef enum:
    SERIAL_DIGITS = 10

cdef class LoadRequest:
    cdef MessageHead head
    cdef readonly bytes body
    cdef bytes wire                  # head and body as HTTP/1.1 sends them
    cdef bint framed                 # there is a body, or a length of 0 is said
    cdef uint32_t flags              # HeadFlag bits that the reader of the response needs
    # Where ten digits of the body begin that are another number in each request; -1: nowhere.
    cdef Py_ssize_t serial_at
    cdef readonly int judgement
    cdef readonly str format         # of a stream: completions, messages, responses, gemini, converse

    # Appends `n` bytes at `p`, which end with the body, with this number in the place of its digits.
    cdef int put(self, ByteBuffer out, const char* p, Py_ssize_t n, uint64_t serial) except -1
