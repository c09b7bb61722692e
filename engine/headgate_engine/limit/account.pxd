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
    # Processes whose reservations are told apart in one slot; the reservations of further ones are in slots of their own.
    RESERVERS = 32

cdef struct AccountSlot:
    uint64_t lock              # shared.lock word
    int64_t start[3]           # Unix seconds at which the window began that `used` counts
    int64_t used[9]            # by window and unit
    int64_t reserved[3]        # by unit
    int64_t held[96]           # of `reserved`, by process and unit, of the first RESERVERS
    # What several gateways share, by window and unit: each spends what it has leased of the limit.
    int64_t own[9]             # of `used`, what this gateway has used itself
    int64_t leased[9]          # all that it has leased in the window
    int64_t spare[9]           # what the store had left then
    int64_t short_ns[9]        # until when that is believed, by the monotonic clock
    int64_t lent[9]            # of `leased`, what the store takes back once it has not heard of this gateway for some time

# The same of RESERVERS others; the lock is that of the account.
cdef struct HeldSlot:
    int64_t held[96]

cdef enum:
    AMOUNTS = 5                # requests, calls, input tokens, output tokens, picodollars

cdef struct SpendSlot:
    uint64_t lock
    # These only grow, modulo 2**64: whoever finds them after all processes were killed can tell what the ledger has of them.
    # It notes what it has seen of them under the number of its batch, before it writes that.
    uint64_t total[5]
    # The last two batches, and what of `total` was in them and those before. The number of a batch is stored last; 0: none.
    int64_t batch[2]
    uint64_t carried[10]

# What all processes of a gateway know of its store.
cdef struct FenceSlot:
    int64_t at_ns              # by the monotonic clock, from when on the store may have taken back what is `lent`; 0: never

# The limit that stands in the way.
cdef struct Breach:
    int window                 # -1: none does
    int unit
    int64_t limit, left
    int64_t ends_s             # Unix seconds
    int lacks                  # no limit is in the way, but the store has to be asked for a lease

cdef class LeaseState:
    # Whether a process holds limits against leases of a store that gateways share, and what it knows of that store.
    cdef readonly bint on, local, down
    cdef SlotRef held          # keeps the slot alive
    cdef FenceSlot* fence
    cdef bint fenced(self) noexcept nogil   # what is `lent` is not there any more

cdef class UsageAccount:
    cdef SlotRef held          # keeps the slot alive
    cdef SlotRef others        # keeps the slot of `mine` alive, where it is another one
    cdef Segment segment
    cdef AccountSlot* slot
    cdef int64_t* mine         # what this process has reserved, by unit
    cdef readonly str scope, name
    cdef SlotRef _held_by(self, int group)

cdef class UsageLimits:
    cdef readonly UsageAccount account
    cdef LeaseState state
    cdef int64_t most[9]       # by window and unit, -1: unlimited
    cdef int64_t warn[9]       # the sum from which a response warns, -1: none does
    cdef readonly bint tokens, money       # one of these is limited
    # Reserves n more of each of tokens and picodollars, or nothing. breach.window tells which limit is in the way.
    cdef int reserve(self, int64_t tokens, int64_t picos, int64_t now_s, Breach* breach) noexcept nogil
    cdef bint held(self) noexcept nogil     # against leases
    cdef int64_t _left(self, int at) noexcept nogil
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
