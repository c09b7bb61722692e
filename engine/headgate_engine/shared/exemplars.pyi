from typing import NamedTuple

PREFIX: bytes
MAX_HISTOGRAMS: int

class FoundExemplar(NamedTuple):
    """One observation. trace_id, span_id: hexadecimal digits. value: in units of the bounds. time_s: since 1970."""

    trace_id: str
    span_id: str
    value: float
    time_s: float

class Exemplars:
    """The exemplars of one histogram. Only C code uses it."""

def found_in(raw: bytes, scale: int) -> dict[int, FoundExemplar]:
    """Return the exemplars in a copy of a slot (Segment.entries()), by the number of their bucket."""
