# Credentials that run out: what holds one, and the step that waits for it when there is none.

from headgate_engine.plan.step cimport AsyncStep
from headgate_engine.steps.location cimport CredentialLocation

from libc.stdint cimport int64_t

cdef class HeldCredential:
    cdef readonly object value           # bytes of a token, or AwsKeys; None: there is none
    cdef readonly int64_t renew_ns       # from then on somebody fetches another (monotonic)
    cdef readonly int64_t expires_ns     # from then on it is of no use

cdef class HeldStep(AsyncStep):
    cdef HeldCredential held
    cdef CredentialLocation location     # None: another step reads what is held
