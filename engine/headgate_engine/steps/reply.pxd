# A step with a fixed reply: directResponse, and the refusal for a backend that cannot be used.

from headgate_engine.context.request cimport Reply
from headgate_engine.plan.step cimport Step

cdef class ReplyStep(Step):
    cdef Reply reply
