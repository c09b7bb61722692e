"""Credentials that run out; see held.pxd."""

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
        """Holds another value: for `expires_s` seconds, of which the first `renew_s` without asking for a newer one."""
        cdef int64_t now = monotonic_ns()
        self.value = value
        self.renew_ns = now + <int64_t>(renew_s * 1e9)
        self.expires_ns = now + <int64_t>(expires_s * 1e9)

    @property
    def fresh(self):
        """Nobody has to ask for a newer one."""
        return monotonic_ns() < self.renew_ns

    @property
    def usable(self):
        """It can be used, now."""
        return monotonic_ns() < self.expires_ns


cdef class HeldStep(AsyncStep):
    """Puts what is held into the request as long as it is fresh; `function(ctx)` does what is to be done otherwise."""

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
