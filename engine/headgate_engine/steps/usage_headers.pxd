# Fields of a model's answer with its cost, its tokens, and the times that it took: of its head, or behind a stream.

from headgate_engine.plan.step cimport Step

cdef class UsageHeadersStep(Step):
    cdef bint cost, tokens, overhead, generation
