# Moves a bearer credential to the field that an LLM provider needs, and adds the provider's required fields.

from headgate_engine.plan.step cimport Step

cdef class ProviderStep(Step):
    cdef bytes header                    # destination of the bearer value; None: it stays
    cdef bytes starting, sparing         # prefix of values to move; prefix of values to leave. Empty: no condition
    cdef object formats                  # frozenset of formats to the provider; None: all
    cdef bytes spared_path               # part of paths whose requests keep the value as it is; None: there is none
    cdef tuple missing                   # (name, value), added if the request does not have the field
    cdef tuple pictured                  # the same, for requests with pictures

cdef class SubprotocolKeyStep(Step):
    pass
