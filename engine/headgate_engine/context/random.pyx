"""Random numbers for weights, load balancing and ids of traces: fast and evenly distributed, not secret."""

from libc.stdint cimport uint64_t

import os
import random

cdef uint64_t _state


def _seed():
    global _state
    _state = random.SystemRandom().getrandbits(64) | 1


_seed()
# Workers are forked: each needs its own seed.
os.register_at_fork(after_in_child=_seed)


cdef uint64_t next_random() noexcept nogil:
    global _state
    cdef uint64_t x = _state
    x ^= x >> 12
    x ^= x << 25
    x ^= x >> 27
    _state = x
    return x * <uint64_t>2685821657736338717


cdef uint64_t random_below(uint64_t bound) noexcept nogil:
    return <uint64_t>(((next_random() >> 32) * bound) >> 32)
