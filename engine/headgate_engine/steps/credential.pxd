# Sets a configured credential, replacing the client's field.

from headgate_engine.plan.step cimport Step

cdef class CredentialStep(Step):
    cdef bytes header, value
