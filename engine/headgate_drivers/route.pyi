from collections.abc import Iterable

from headgate_engine.route.index import KeyIndex
from headgate_engine.route.table import RouteRule, RouteTable

def longest_prefix(index: KeyIndex, space: int, path: bytes, lengths: Iterable[int]) -> int:
    """Return the value of the longest whole-segment prefix of `path` among those with `lengths`, or -1."""

def matched(
    table: RouteTable, host: str, method: str, target: str, headers: Iterable[tuple[str, str]] = ()
) -> RouteRule | None:
    """Return the rule that takes a request, None if none does."""

def nanoseconds_per_match(
    table: RouteTable, requests: Iterable[tuple[str, str, str, Iterable[tuple[str, str]]]], *, rounds: int = 10
) -> float:
    """Return the mean time of a match, measured in C.

    requests: (host, method, target, headers) each. rounds: how often all of them are matched, 1..10**8; otherwise
    ValueError.
    """
