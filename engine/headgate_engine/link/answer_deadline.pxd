# The time in which a service has to say something; see answer_deadline.pyi.

from headgate_engine.link.timers cimport Timer, TimerQueue

from libc.stdint cimport int64_t

cdef class AnswerDeadline(Timer):
    cdef TimerQueue timers
    cdef int64_t length_ns
    cdef object late               # None once it is closed
