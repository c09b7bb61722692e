# Changes of authority and path, and redirects.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.plan.step cimport Step
from headgate_engine.route.table cimport RouteRule

cdef class AuthorityChange:
    cdef bytes full, host
    cdef int port
    cdef bytes apply(self, bytes authority, bint keep_port)

cdef class PathChange:
    cdef bytes full, prefix, stem
    # Whose prefix it replaces: that of the route with this many others in front of it, where routes have delegated; below 0:
    # of the route that has the request.
    cdef int level
    cdef RouteRule rule_of(self, RequestContext ctx)
    # Returns the new target with its query, None if the route's rule has no prefix to replace.
    cdef bytes apply(self, RequestContext ctx)

cdef class RewriteStep(Step):
    cdef AuthorityChange authority
    cdef PathChange path
    cdef Reply failed

cdef class RedirectStep(Step):
    cdef bytes scheme
    cdef AuthorityChange authority
    cdef PathChange path
    cdef int status
    cdef Reply failed
