# Keys of session tickets (RFC 5077, RFC 8446 section 4.6.1). All workers derive the same ones from a common secret and the
# time, without a message: a client may resume with any of them. A period's secret is made from the one before it, and that
# is forgotten: what is in memory opens no ticket of an earlier period.

from libc.stdint cimport int64_t

cdef struct TicketKey:
    unsigned char name[16]
    unsigned char cipher[32]
    unsigned char mac[32]

cdef class TicketKeys:
    cdef readonly int64_t period_s
    cdef readonly int64_t number     # of the current period
    cdef bytes secret                # of the current period
    cdef TicketKey current, previous
    # The keys at this time; called before each use.
    cdef int advance(self, int64_t now_s) except -1
    cdef int _derive(self) except -1
    # NULL: no key has this name.
    cdef TicketKey* find(self, const unsigned char* name) noexcept
