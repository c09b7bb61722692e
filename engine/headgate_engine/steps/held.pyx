"""Credentials that expire; see held.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport CONTINUE, AsyncStep
from headgate_engine.steps.backend_auth cimport writable

from libc.stdint cimport int64_t


cdef class HeldCredential:
    def __repr__(self):
        return "HeldCredential(<redacted>)"

    def __reduce__(self):
        raise TypeError("a credential stays in its process")

    def keep(self, value, double renew_s, double expires_s):
        """Store a value for `expires_s` seconds. For the first `renew_s` seconds it is fresh."""
        cdef int64_t now = monotonic_ns()
        self.value = value
        self.renew_ns = now + <int64_t>(renew_s * 1e9)
        self.expires_ns = now + <int64_t>(expires_s * 1e9)

    @property
    def fresh(self):
        """True if it need not be renewed yet."""
        return monotonic_ns() < self.renew_ns

    @property
    def usable(self):
        """True if it has not expired."""
        return monotonic_ns() < self.expires_ns


cdef class HeldStep(AsyncStep):
    """Sets the held credential as long as it is fresh; otherwise `function(ctx)` must renew it and set it.

    location: None if another step reads the credential. Raises ValueError if it is an expression.
    """

    def __init__(self, function, HeldCredential held not None, CredentialLocation location=None):
        super().__init__("backendAuth", function)
        self.held = held
        self.location = None if location is None else writable(location)

    def __repr__(self):
        return "HeldStep(<redacted>)"

    cdef int run(self, RequestContext ctx) except -1:
        if monotonic_ns() < self.held.renew_ns:
            if self.location is not None:
                self.location.put(ctx, <bytes>self.held.value)
            return CONTINUE
        return AsyncStep.run(self, ctx)
