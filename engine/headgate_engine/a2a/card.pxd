# Agent cards on their way to clients.

from headgate_engine.a2a.place cimport AgentPlace
from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class CardTap(ResponseTap):
    # Reads a card whole and puts the client's URLs into it.
    cdef AgentPlace place
    cdef Reply failed                    # the answer where that cannot be done; the reason goes behind its text
    cdef ByteBuffer kept
    cdef str coding                      # content coding of the card, None: none
    cdef int _settle_head(self, MessageHead head) except -1

# Returns (card with the client's URLs, number of signatures that it had). Raises CardError.
cdef tuple rewritten(bytes text, AgentPlace place)

cdef CardTap card_tap(AgentPlace place, int64_t limit, Reply failed)
