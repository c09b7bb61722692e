# Random numbers for weights, load balancing and ids of traces: fast and evenly distributed, not secret.

from libc.stdint cimport uint64_t

# xorshift64* (https://doi.org/10.1145/2845077). One state per process, seeded by the system.
cdef uint64_t next_random() noexcept nogil
# Returns a number in [0, bound), bound below 2**32. Multiply-shift instead of modulo: no division, negligible bias.
cdef uint64_t random_below(uint64_t bound) noexcept nogil
