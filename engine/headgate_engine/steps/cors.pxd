# Cross-origin requests: replies to preflights, and adds the fields to other responses.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport Step

cdef class OriginRule:
    cdef bint any_origin
    cdef bytes exact                # scheme://host[:port], default ports left out, lower case
    cdef tuple parts                # of a pattern: the texts between the stars
    cdef bint matches(self, bytes origin) except -1

cdef class CorsStep(Step):
    cdef tuple origins              # OriginRule
    cdef tuple methods, allowed, exposed
    cdef bytes method_list, header_list, exposed_list, max_age
    cdef bint credentials
    cdef bint any_method, any_header
    cdef dict known                 # cache of recent origins
    cdef bint allows(self, bytes origin) except -1
    # Fields of the answer to a preflight; `asked` is the place of access-control-request-method in the head.
    cdef tuple _preflight(self, MessageHead head, bytes origin, int asked)
