# Random numbers for weights and balance: they need speed and spread, not secrecy.

from libc.stdint cimport uint64_t

# xorshift64* (Marsaglia 2003, Vigna 2016); one state a process, seeded by the system.
cdef uint64_t next_random() noexcept nogil
# A number in [0, bound), bound below 2**32: multiply-shift instead of modulo, no bias worth naming and no division.
cdef uint64_t random_below(uint64_t bound) noexcept nogil
