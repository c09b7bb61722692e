# Credentials that expire: the holder of one, and the step that waits while there is none.

from headgate_engine.plan.step cimport AsyncStep
from headgate_engine.steps.location cimport CredentialLocation

from libc.stdint cimport int64_t

cdef class HeldCredential:
    cdef readonly object value           # bytes of a token, or AwsKeys; None: no credential yet
    cdef readonly int64_t renew_ns       # time of renewal (monotonic)
    cdef readonly int64_t expires_ns     # time of expiry (monotonic)

cdef class HeldStep(AsyncStep):
    cdef HeldCredential held
    cdef CredentialLocation location     # None: another step reads the credential
