# Steps that answer: directResponse, and the fixed refusal of a backend that cannot be used.

from headgate_engine.context.request cimport Reply
from headgate_engine.plan.step cimport Step

cdef class ReplyStep(Step):
    cdef Reply reply
