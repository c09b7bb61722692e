"""Backend credentials at any location: fixed ones, the client's own, and tokens that this process mints."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport CONTINUE, Step
from headgate_engine.steps.location cimport IN_EXPRESSION, CredentialLocation

from libc.stdint cimport int64_t


cdef CredentialLocation writable(CredentialLocation location):
    if location.kind == IN_EXPRESSION:
        raise ValueError("a credential cannot be put where an expression reads it")
    return location


cdef class LocatedCredentialStep(Step):
    """Sets the same value for every request. Raises ValueError, without the value, for control characters."""

    def __init__(self, CredentialLocation location not None, bytes value not None):
        self.name = "backendAuth"
        self.location = writable(location)
        if any(c < 32 or c == 127 for c in value):
            raise ValueError("the credential has a control character in it")
        self.value = value

    def __repr__(self):
        return "LocatedCredentialStep(<redacted>)"

    cdef int run(self, RequestContext ctx) except -1:
        self.location.put(ctx, self.value)
        return CONTINUE


cdef class PassthroughStep(Step):
    """Sets the token that jwtAuth verified and removed from the request. Without a token it does nothing."""

    def __init__(self, CredentialLocation location not None):
        self.name = "backendAuth"
        self.location = writable(location)

    cdef int run(self, RequestContext ctx) except -1:
        if ctx.jwt_token is not None:
            self.location.put(ctx, ctx.jwt_token)
        return CONTINUE


cdef class MintedCredentialStep(Step):
    """Sets a value of `mint()`, which returns it with the seconds for which it may be reused."""

    def __init__(self, CredentialLocation location not None, mint):
        self.name = "backendAuth"
        self.location = writable(location)
        self.mint = mint

    def __repr__(self):
        return "MintedCredentialStep(<redacted>)"

    cdef int run(self, RequestContext ctx) except -1:
        cdef int64_t now = monotonic_ns()
        if now >= self.until_ns:
            value, seconds = self.mint()
            self.value = value
            self.until_ns = now + <int64_t>(seconds * 1e9)
        self.location.put(ctx, self.value)
        return CONTINUE
