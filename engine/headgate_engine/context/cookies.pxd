# Cookies of the gateway's own.

from headgate_engine.context.request cimport RequestContext

# Moves the cookies of browser sessions and logins, of all policies, from the head to ctx.own_cookies. All others stay: as
# they are where there are none of these.
cdef int take_session_cookies(RequestContext ctx) except -1
