# Puts a bearer credential where an LLM provider wants it, and adds the fields it cannot do without.

from headgate_engine.plan.step cimport Step

cdef class ProviderStep(Step):
    cdef bytes header                    # where the bearer value goes; None: it stays
    cdef bytes starting, sparing         # only values that begin so; not those that begin so. Empty: no condition
    cdef object formats                  # frozenset of formats asked in; None: all
    cdef tuple missing                   # (name, value) added where the request has no such field
    cdef tuple pictured                  # the same, for requests that show the model a picture
