# Credentials for backends that are not one fixed header.

from headgate_engine.plan.step cimport Step
from headgate_engine.steps.location cimport CredentialLocation

from libc.stdint cimport int64_t

cdef class LocatedCredentialStep(Step):
    cdef CredentialLocation location
    cdef bytes value

cdef class PassthroughStep(Step):
    cdef CredentialLocation location

cdef class MintedCredentialStep(Step):
    cdef CredentialLocation location
    cdef object mint
    cdef bytes value
    cdef int64_t until_ns

# The location itself; ValueError for one where an expression reads.
cdef CredentialLocation writable(CredentialLocation location)
