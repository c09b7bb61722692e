from headgate_engine.limit.account import UNITS as UNITS
from headgate_engine.limit.account import WINDOWS as WINDOWS
from headgate_engine.limit.account import SpendCell, UsageLimits

_Told = tuple[str, str, int, int, int]

def reserve_at(limits: UsageLimits, tokens: int, picos: int, now_s: int) -> _Told | None:
    """Reserve, or nothing. Return None, or (window, unit, limit, left, Unix seconds of the window's end)."""

def lacks_at(limits: UsageLimits, tokens: int, picos: int, now_s: int) -> bool:
    """Return whether a reservation needs a lease that the store may have."""

def take_request_at(limits: UsageLimits, now_s: int) -> _Told | None:
    """Count a request, or nothing. Return as reserve_at() does."""

def settle_at(limits: UsageLimits, reserved: tuple[int, int], used: tuple[int, int], now_s: int) -> None:
    """Take a reservation of (tokens, picodollars) back, and add what was used instead."""

def near_at(limits: UsageLimits, now_s: int) -> _Told | None:
    """Return the first sum that is above its warning, as reserve_at() does."""

def count_request(cell: SpendCell) -> None:
    """Count a request."""

def spend(cell: SpendCell, input_tokens: int, output_tokens: int, picos: int) -> None:
    """Count a call of a model."""
