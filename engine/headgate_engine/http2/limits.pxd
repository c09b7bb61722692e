# What one side of a connection allows its peer, in numbers; every flood and every queue has one.

from libc.stdint cimport int64_t, uint32_t

cdef class Http2Limits:
    cdef readonly uint32_t window              # bytes of a stream's window when it begins
    cdef readonly uint32_t max_window          # to which it grows while its reader keeps up; equal to `window`: it stays
    cdef readonly uint32_t connection_window
    cdef readonly uint32_t max_frame           # payload bytes
    cdef readonly uint32_t max_streams         # at a time
    cdef readonly uint32_t max_list            # bytes of a field list as RFC 9113 section 6.5.2 counts them
    cdef readonly int max_fields, max_continuations
    # Streams that the peer gives up, or makes us give up, before they are answered.
    cdef readonly int resets, resets_per_second
    # Frames that cost work and bring nothing: SETTINGS, PING, PRIORITY, unknown and empty ones, tiny windows. A frame that
    # carries something pays for one of them.
    cdef readonly int oddities, oddities_per_second
    cdef readonly int64_t ping_interval_ns     # without a sign of life until a PING asks for one; 0: never
    cdef readonly int64_t ping_timeout_ns
    cdef readonly int64_t settings_timeout_ns  # until our SETTINGS are acknowledged

cdef struct RateBudget:
    int64_t spent            # thousandths
    int64_t at_ns            # when it was reckoned

# Spends one; False: the budget is used up.
cdef bint spend(RateBudget* budget, int burst, int per_second, int64_t now_ns) noexcept nogil
