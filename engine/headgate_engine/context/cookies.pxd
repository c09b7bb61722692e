# Cookies of the gateway's own.

from headgate_engine.context.headers cimport MessageHead

# Removes the cookies of browser sessions and logins that begin with one of the prefixes (bytes, or a tuple of bytes). All
# others stay unchanged.
cdef int drop_cookies(MessageHead head, object prefixes) except -1
# The same for those of all policies.
cdef int drop_session_cookies(MessageHead head) except -1
