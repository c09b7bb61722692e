# Sessions in cookies: browser login.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.steps.identity cimport IdentityStep

cdef class OidcStep(IdentityStep):
    cdef tuple own                   # what the policy's cookies begin with
    cdef bytes callback, logout      # paths that the policy answers itself
    cdef bint own_path(self, MessageHead head) except -1

cdef bint is_preflight(MessageHead head) noexcept
