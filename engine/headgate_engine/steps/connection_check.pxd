# Who may connect: rules, and a service that is asked behind them (link.admission).

from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport Step

cdef class ConnectionCheck(Step):
    cdef Step rules                  # None: everybody
    cdef readonly object question

    cdef int run(self, RequestContext ctx) except -1
