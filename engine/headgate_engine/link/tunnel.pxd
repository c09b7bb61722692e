# An upgraded connection (RFC 9110 section 7.8): bytes go to both sides as they come, or through who inspects them.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.exchange cimport ExchangeState

cdef class Tunnelling(ExchangeState):
    pass

cdef bint same_upgrade(MessageHead request, MessageHead response) except -1
