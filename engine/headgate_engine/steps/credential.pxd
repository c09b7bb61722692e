# Puts a configured credential into the request, in place of what the client sent there.

from headgate_engine.plan.step cimport Step

cdef class CredentialStep(Step):
    cdef bytes header, value
