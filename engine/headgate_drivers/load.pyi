from headgate_engine.load.arrivals import Arrivals
from headgate_engine.load.histogram import LatencyHistogram
from headgate_engine.load.ledger import LoadLedger

def due_of(arrivals: Arrivals, number: int) -> int: ...
def next_of(arrivals: Arrivals, now_ns: int) -> int | None: ...
def take(arrivals: Arrivals, now_ns: int) -> int:
    """Hand out the next request, which there must be; return when it was due."""

def gathered(arrivals: Arrivals, now_ns: int, span_ns: int) -> int:
    """Return when the last request is due that is due at most `span_ns` after the next one."""

def stamp(fd: int) -> None:
    """Have reads of a socket say when they came."""

def recv_stamped(fd: int) -> tuple[bytes, int]:
    """Read up to 4,096 bytes without waiting, and return when the last came: ns of the time of day, 0: not known."""

def note(histogram: LatencyHistogram, value: int, times: int = 1) -> None: ...
def answered(ledger: LoadLedger, due_ns: int, now_ns: int) -> None: ...
def lost(ledger: LoadLedger, due_ns: int, now_ns: int, kind: str, waited: bool) -> None: ...
