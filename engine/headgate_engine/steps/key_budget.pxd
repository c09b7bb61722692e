# Limits of tokens and money of virtual keys: what a request may come to is reserved before a provider is asked.

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.plan.step cimport Step
from headgate_engine.steps.virtual_key cimport KeyTable, KeyUse

from libc.stdint cimport int64_t

cdef class KeyBudgetStep(Step):
    cdef KeyTable table
    cdef Reply unpriced, storeless
    cdef int hold(self, RequestContext ctx, KeyUse use, int64_t tokens, int64_t picos, bint last) except -1
    cdef int64_t worst_tokens(self, KeyUse use, RequestContext ctx, int64_t* output, int64_t* beside) except -1

# What an answer costs at most, with a prompt of so many tokens beside those of sound; -1 without a price.
cdef int64_t worst_price(RequestContext ctx, LlmCall call, KeyUse use, int64_t prompt, int64_t output) except? -2
