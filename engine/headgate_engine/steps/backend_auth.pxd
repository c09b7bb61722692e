# Credentials for backends, other than one fixed header.

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

# Returns the location. Raises ValueError for one that is an expression, as that can only read.
cdef CredentialLocation writable(CredentialLocation location)
