# What virtual keys and teams have used: exact sums in shared memory, by window and unit, and what is reserved for requests
# that are under way. Time is an argument (Unix seconds): windows are those of the calendar, in UTC.

from headgate_engine.shared.segment cimport Segment, SlotRef

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    W_MINUTE = 0
    W_DAY = 1
    W_MONTH = 2
    W_COUNT = 3

cdef enum:
    U_REQUESTS = 0
    U_TOKENS = 1
    U_PICOS = 2                # picodollars
    U_COUNT = 3

cdef enum:
    # Processes whose reservations are told apart; further ones share the last place.
    RESERVERS = 32

cdef struct AccountSlot:
    uint64_t lock              # shared.lock word
    int64_t start[3]           # Unix seconds at which the window began that `used` counts
    int64_t used[9]            # by window and unit
    int64_t reserved[3]        # by unit
    int64_t held[96]           # of `reserved`, by process and unit

cdef struct SpendSlot:
    uint64_t lock
    int64_t requests, calls, input_tokens, output_tokens, picos

# The limit that stands in the way.
cdef struct Breach:
    int window                 # -1: none does
    int unit
    int64_t limit, left
    int64_t ends_s             # Unix seconds

cdef class UsageAccount:
    cdef SlotRef held          # keeps the slot alive
    cdef AccountSlot* slot
    cdef int place             # of this process in `held` of the slot
    cdef readonly str scope, name

cdef class UsageLimits:
    cdef readonly UsageAccount account
    cdef int64_t most[9]       # by window and unit, -1: unlimited
    cdef int64_t warn[9]       # the sum from which a response warns, -1: none does
    cdef readonly bint tokens, money       # one of these is limited
    # Reserves n more of each of tokens and picodollars, or nothing. breach.window tells which limit is in the way.
    cdef int reserve(self, int64_t tokens, int64_t picos, int64_t now_s, Breach* breach) noexcept nogil
    cdef int _room(self, int unit, int64_t n, Breach* breach) noexcept nogil
    # Counts a request, or nothing.
    cdef int take_request(self, int64_t now_s, Breach* breach) noexcept nogil
    cdef int give_request(self) noexcept nogil
    # Takes reservations back and adds what was used instead.
    cdef int settle(self, int64_t tokens, int64_t picos, int64_t used_tokens, int64_t used_picos, int64_t now_s) noexcept nogil
    # The first sum that is above its warning.
    cdef int near(self, int64_t now_s, Breach* breach) noexcept nogil

cdef class SpendCell:
    cdef SlotRef held
    cdef SpendSlot* slot
    cdef int count_request(self) noexcept nogil
    cdef int spend(self, int64_t input_tokens, int64_t output_tokens, int64_t picos) noexcept nogil
