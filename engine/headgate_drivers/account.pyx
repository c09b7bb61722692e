"""Limits of virtual keys, for tests: what only C code calls."""

from headgate_engine.limit.account cimport Breach, SpendCell, UsageLimits

from libc.stdint cimport int64_t

from headgate_engine.limit.account import UNITS, WINDOWS


cdef tuple told(Breach* breach):
    return WINDOWS[breach.window], UNITS[breach.unit], breach.limit, breach.left, breach.ends_s


def reserve_at(UsageLimits limits not None, int64_t tokens, int64_t picos, int64_t now_s):
    """Reserve, or nothing. Return None, or (window, unit, limit, left, Unix seconds of the window's end)."""
    cdef Breach breach
    return None if limits.reserve(tokens, picos, now_s, &breach) else told(&breach)


def lacks_at(UsageLimits limits not None, int64_t tokens, int64_t picos, int64_t now_s):
    """Return whether a reservation needs a lease that the store may have."""
    cdef Breach breach
    return not limits.reserve(tokens, picos, now_s, &breach) and bool(breach.lacks)


def take_request_at(UsageLimits limits not None, int64_t now_s):
    """Count a request, or nothing. Return as reserve_at() does."""
    cdef Breach breach
    return None if limits.take_request(now_s, &breach) else told(&breach)


def settle_at(UsageLimits limits not None, tuple reserved not None, tuple used not None, int64_t now_s):
    """Take a reservation of (tokens, picodollars) back, and add what was used instead."""
    limits.settle(reserved[0], reserved[1], used[0], used[1], now_s)


def near_at(UsageLimits limits not None, int64_t now_s):
    """Return the first sum that is above its warning, as reserve_at() does."""
    cdef Breach breach
    return told(&breach) if limits.near(now_s, &breach) else None


def count_request(SpendCell cell not None):
    """Count a request."""
    cell.count_request()


def spend(SpendCell cell not None, int64_t input_tokens, int64_t output_tokens, int64_t picos):
    """Count a call of a model."""
    cell.spend(input_tokens, output_tokens, picos)
