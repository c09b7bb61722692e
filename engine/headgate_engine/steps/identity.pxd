# Steps that authenticate the client: JSON web tokens, API keys, basic authentication.

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.plan.step cimport AsyncStep, Step
from headgate_engine.steps.location cimport CredentialLocation

from libc.stdint cimport int64_t

cdef enum Mode:
    STRICT = 0
    OPTIONAL = 1
    PERMISSIVE = 2

cdef enum:
    MAX_REMEMBERED = 16384

cdef class Remembered:
    cdef object value
    cdef int64_t until_ns

cdef class IdentityStep(AsyncStep):
    cdef readonly CredentialLocation location
    cdef readonly int mode
    cdef Reply missing, invalid
    cdef dict remembered
    cdef bytes key_of(self, bytes credential)
    cdef int accept(self, RequestContext ctx, bytes credential, object value) except -1
    cdef int refuse(self, RequestContext ctx, Reply reply, bint absent) except -1

cdef class JwtStep(IdentityStep):
    cdef tuple trusted               # pairs of VerifiedTokens and the checks of this step's provider

cdef class ChallengeStep(JwtStep):
    cdef object challenge

cdef class ApiKeyStep(IdentityStep):
    cdef dict keys

cdef class BasicStep(IdentityStep):
    pass
