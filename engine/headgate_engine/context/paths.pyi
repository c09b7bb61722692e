import re
from collections.abc import Callable

DOUBTFUL: re.Pattern[bytes]
PARAMETERS: re.Pattern[bytes]
ALL_COMBINATIONS: int
MAX_DOUBTFUL: int
LENIENT: tuple[Callable[[bytes], bytes], ...]
MODES: dict[str, int]

def resolved(path: bytes) -> bytes:
    """Return the path in its form: unreserved characters decoded, dot segments resolved. Other bytes stay."""

def readings(path: bytes) -> tuple[bytes, ...]:
    """Return all readings of a path but itself, in any order: at most 127, of long paths at most 13."""

def settled(path: str, mode: int = ...) -> tuple[str, bool] | None:
    """Return the path in its form and whether it has several readings, None if it is refused. mode: of MODES."""

class PathGuise:
    """C face only: puts another path into a head for a while."""
