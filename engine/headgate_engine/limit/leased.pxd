# A bucket whose tokens belong to a store that several replicas share (a Redis server). This process spends what it has
# leased of them; who talks to the store is in Python (headgate.policy.shared_limits).

from headgate_engine.limit.bucket cimport TakeResult, TokenBucket
from headgate_engine.shared.segment cimport SlotRef

from libc.stdint cimport int64_t, uint64_t

cdef struct LeaseSlot:
    uint64_t lock              # shared.lock word
    # Requests: what is left of the lease. Tokens of models: what the store had, less what was used since.
    int64_t level
    int64_t tick, epoch, seq   # the window that the level belongs to, and the state of the store at the last answer
    int64_t window_end_ns      # CLOCK_MONOTONIC; never later than the store's
    int64_t remaining          # what the store had left at its last answer
    int64_t unreported         # used, and not yet told to the store; below 0: to be given back
    int64_t told_ns            # of the last answer
    int64_t used_ns            # of the last use
    int64_t empty_until_ns     # the store had nothing: nobody asks it again before

cdef class StoreState:
    cdef readonly bint down
    cdef readonly bint local

cdef class LeasedBucket(TokenBucket):
    cdef SlotRef lease_held
    cdef LeaseSlot* lease
    cdef readonly StoreState state
    # The limit of this replica alone, for the time without a store. It is charged at all times.
    cdef readonly TokenBucket alone
    cdef readonly bytes key
    cdef readonly bint tokens
    cdef readonly int64_t share        # tokens that are leased at once
    cdef public bint asking            # this process waits for the store's answer
    cdef public bint active            # this process looks after it
    # Whether the store is to be asked before the lease runs out.
    cdef bint low(self, int64_t now_ns) noexcept nogil
    # Whether nothing is left, and the store said a moment ago that it has nothing either.
    cdef bint empty(self, int64_t now_ns) noexcept nogil
    cdef int describe(self, int64_t now_ns, bint allowed, TakeResult* out) noexcept nogil
