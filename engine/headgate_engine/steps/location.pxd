# Where a client puts a credential, and how it is taken out again.

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
    cdef bytes shown                # the same as written, for put()
    cdef object program             # IN_EXPRESSION
    # The credential, or None. Sets `conflict` when there are several: nobody can tell which one is meant.
    cdef bytes find(self, RequestContext ctx)
    cdef bint conflict
    cdef int drop(self, RequestContext ctx) except -1
    # Puts a credential there in place of what the client sent.
    cdef int put(self, RequestContext ctx, bytes value) except -1
    cdef bytes in_header(self, MessageHead head)
    cdef bytes in_query(self, MessageHead head)
    cdef bytes in_cookies(self, MessageHead head)
    cdef bytes in_expression(self, RequestContext ctx)
    cdef int rewrite_query(self, MessageHead head, bytes value) except -1
    cdef int rewrite_cookies(self, MessageHead head, bytes value) except -1
