# From the backend's response head to the client's last byte: taps that count, translate or guard an answer, answers that
# are held back until it is certain that they are whole, and guards that are asked about them.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.tunnel cimport Tunnelling
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class Answering(Tunnelling):
    cdef ByteBuffer tapped           # what the tap made of the bytes that came
    # -- a response that steps want whole
    cdef int64_t hold_limit
    cdef bint hold_strict
    # -- guards that are asked about the answer
    cdef bint answer_ended           # the upstream has said all
    cdef bint tap_finished
    cdef MessageHead trailers

    cdef int _open_response(self, MessageHead head) except -1
    cdef int _await_answer(self) except -1
    cdef int _answer_begins(self) except -1
    cdef bint _answer_fails(self, str detail) except -1
    cdef int _answer_lost(self, str detail) except -1
    cdef int _stream_broke(self, str detail) except -1
    cdef int _stream_told(self, ByteBuffer out) except -1
    cdef int _stalled(self, int64_t now_ns) except -1
    cdef bint _hold_response(self, MessageHead head) except -1
    cdef int _release_response(self) except -1
    cdef int _hold(self, const char* p, Py_ssize_t n) except -1
    cdef int _pass_on(self, const char* p, Py_ssize_t n) except -1
    cdef int _tap_fed(self) except -1
    cdef ByteBuffer tapped_out(self)
    cdef int _end_answer(self) except -1
    cdef int _forget_guards(self) except -1
    cdef int _ask_guards(self) except -1
