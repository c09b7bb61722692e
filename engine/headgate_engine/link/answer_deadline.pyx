"""The time in which a service has to say something; see answer_deadline.pyi."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.core cimport RequestCore
from headgate_engine.link.timers cimport Timer

from libc.stdint cimport int64_t


cdef class AnswerDeadline(Timer):
    def __init__(self, RequestContext ctx not None, double seconds, late not None):
        self.timers = (<RequestCore?>ctx.exchange).worker.timers
        self.length_ns = <int64_t>(seconds * 1e9)
        self.late = late

    def set(self, bint running):
        if not running or self.late is None:
            self.timers.disarm(self)
        else:
            self.timers.arm(self, monotonic_ns() + self.length_ns)

    def close(self):
        self.late = None
        self.timers.remove(self)

    cdef int on_timer(self, int64_t now_ns) except -1:
        late = self.late
        if late is not None:
            late()
        return 0
