# The place of a credential in requests: reads, removes and sets it.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext

cdef enum LocationKind:
    IN_HEADER = 0
    IN_QUERY = 1
    IN_COOKIE = 2
    IN_EXPRESSION = 3

cdef class CredentialLocation:
    cdef readonly int kind
    cdef bytes name                 # lower case for headers
    cdef bytes prefix               # lower case, with its blank; empty: none
    cdef bytes shown                # the prefix as configured, for put()
    cdef object program             # IN_EXPRESSION
    cdef object hidden              # IN_QUERY: keeps the parameter out of logs while this object lives
    # Returns the credential, or None. Sets `conflict` if there are several, as the client's choice is then ambiguous.
    cdef bytes find(self, RequestContext ctx)
    cdef bint conflict
    cdef int drop(self, RequestContext ctx) except -1
    # Sets the credential, replacing the client's.
    cdef int put(self, RequestContext ctx, bytes value) except -1
    cdef bytes in_header(self, MessageHead head)
    cdef bytes in_query(self, MessageHead head)
    cdef bytes in_cookies(self, MessageHead head)
    cdef bytes in_expression(self, RequestContext ctx)
    cdef int rewrite_query(self, MessageHead head, bytes value) except -1
    cdef int rewrite_cookies(self, MessageHead head, bytes value) except -1
