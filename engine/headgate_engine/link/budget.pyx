"""The descriptors of a worker; see budget.pxd."""

from libc.stdint cimport int64_t

from headgate_engine.clock cimport monotonic_ns

import logging

logger = logging.getLogger("headgate.worker")

cdef enum:
    # Open in a worker that serves nobody: its channel, log, shared memory, loop and listening sockets.
    OWN_DESCRIPTORS = 24
    # For what comes and goes: files, pipes, sockets that are closed in this turn of the loop.
    LEAST_MARGIN = 4
    MARGIN_SHARE = 64
    MOST_MARGIN = 1024
    # Idle connections that are closed at a time: looking for them costs a look at each pool.
    BATCH = 16

# A lack of descriptors is logged once in this time.
cdef int64_t TELL_NS = 10000000000


cdef class DescriptorBudget:
    """Who may open a descriptor in a worker. limit: RLIMIT_NOFILE."""

    def __init__(self, int64_t limit):
        self.limit = limit
        self.margin = min(MOST_MARGIN, LEAST_MARGIN + limit // MARGIN_SHARE)
        self.pools = {}

    def client_share(self):
        """Return how many client connections there may be: a fifth is kept for those to backends, which are shared."""
        return max(16, (self.limit - OWN_DESCRIPTORS) // 5 * 4)

    def join(self, pool):
        """Close idle connections of this pool (its `shed_idle(most)`) when descriptors run out."""
        self.pools[pool] = None

    def leave(self, pool):
        """Forget a pool."""
        self.pools.pop(pool, None)

    cdef bint take(self, int64_t clients) except -1:
        # What is shed is closed in this turn of the loop, and the new one is opened in the next.
        if self.limit - OWN_DESCRIPTORS - self.margin - clients - self.upstream <= 0 and self._make_room() == 0:
            self.denied = self.denied + 1
            self._tell("connections of clients and to backends leave none")
            return False
        self.upstream = self.upstream + 1
        return True

    cdef void count(self) noexcept:
        self.upstream = self.upstream + 1

    cdef void give_back(self) noexcept:
        self.upstream = self.upstream - 1

    cdef bint admits(self, int64_t clients) except -1:
        return self.limit - OWN_DESCRIPTORS - self.margin // 2 - clients - self.upstream > 0 or self._make_room() > 0

    cdef bint ran_out(self, str reason) except -1:
        self.denied = self.denied + 1
        self._tell(reason)
        return self._make_room() > 0

    cdef int64_t _make_room(self) except -1:
        """Closes idle connections to backends; returns how many."""
        cdef int64_t found = 0
        if self.pools is None:
            return 0
        for pool in self.pools:
            if pool.idle_count:
                found += <int64_t?>pool.shed_idle(BATCH - found)
                if found >= BATCH:
                    break
        self.shed = self.shed + found
        return found

    cdef int _tell(self, str reason) except -1:
        cdef int64_t now = monotonic_ns()
        self.untold = self.untold + 1
        if self.told_ns and now - self.told_ns < TELL_NS:
            return 0
        logger.error("no descriptors are left for connections to backends", extra={
            "reason": reason, "limit": self.limit, "upstream": self.upstream, "times": self.untold})
        self.told_ns = now
        self.untold = 0
        return 0
