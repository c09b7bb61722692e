# Sessions in cookies: browser login.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.steps.identity cimport IdentityStep

cdef class OidcStep(IdentityStep):
    cdef bytes session               # what the session cookie begins with
    cdef bytes callback, logout      # paths that the policy answers itself
    cdef bytes found(self, RequestContext ctx)
    cdef bint own_path(self, MessageHead head) except -1

cdef bint is_preflight(MessageHead head) noexcept
