# AWS Signature Version 4: the keys, and the last step of a request, which signs it.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.plan.step cimport Step
from headgate_engine.steps.held cimport HeldCredential

from libc.stdint cimport int64_t

cdef class AwsKeys:
    cdef readonly bytes access
    cdef bytes secret, token             # token: None without one
    cdef dict derived                    # (day, region, service) -> signing key
    cdef bytes signing_key(self, bytes day, bytes region, bytes service)

# Sets the fields of a signature, replacing existing ones. now: Unix time in seconds.
cdef int sign_head(MessageHead head, bytes body, AwsKeys keys, bytes region, bytes service, int64_t now) except -1

cdef class AwsSignatureStep(Step):
    cdef HeldCredential held             # None: RequestContext.signing_keys
    cdef bytes region, service
