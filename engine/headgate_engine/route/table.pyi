from collections.abc import Iterable, Iterator
from typing import Any

from headgate_engine.route.conditions import ValuePredicate

MAX_HOST: int
MAX_RULES: int
BOUND_LENGTH: int

class RouteRule:
    """One match entry of one route.

    hostnames: exact or `*.suffix`, empty (or `*`) for any. path_kind: exact, prefix or regex (of the whole path).
    method: compared byte by byte. headers, query: (name, 'exact' | 'regex', text), header names in any case.
    target: the result of a match. order: of equal rules the lower one wins. Raises ValueError for a pattern that the
    linear-time engine cannot run, a host name with a misplaced star, or a path without a leading slash.
    """

    def __init__(
        self,
        hostnames: Iterable[str] = (),
        *,
        path_kind: str = "prefix",
        path: str = "/",
        method: str | None = None,
        headers: Iterable[tuple[str, str, str]] = (),
        query: Iterable[tuple[str, str, str]] = (),
        target: object = None,
        order: int = 0,
    ) -> None: ...
    @property
    def hostnames(self) -> tuple[str, ...]: ...
    @property
    def path_kind(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def method(self) -> str | None: ...
    @property
    def headers(self) -> tuple[ValuePredicate, ...]: ...
    @property
    def query(self) -> tuple[ValuePredicate, ...]: ...
    target: Any
    """The result of a match. It may be replaced while the rule is in a table."""
    @property
    def order(self) -> int: ...
    def rank(self) -> tuple[bool, int, int, int]:
        """Return the sort key among the rules of one path, or among all patterns."""

class PathIndex:
    """The compiled rules of several host names. buckets: one list of rules per host name."""

    def __init__(self, buckets: Iterable[Iterable[RouteRule]], scheme: str = "http") -> None: ...
    def steps(self, buckets: Iterable[Iterable[RouteRule]], scheme: str) -> Iterator[None]:
        """Build an index that `__new__` made, some hundred rules between two yields."""

class HostIndex:
    """Numbers of host names. keys: ((is suffix, lower-case name or suffix with its leading dot), number)."""

    def __init__(self, keys: Iterable[tuple[tuple[bool, bytes], int]]) -> None: ...
    def steps(self, keys: Iterable[tuple[tuple[bool, bytes], int]]) -> Iterator[None]:
        """Build an index that `__new__` made, some hundred names between two yields."""

class RouteTable:
    """An immutable table of rules. Of equal rules the first wins. scheme: the value of the pseudo-header `:scheme`.

    Raises ValueError for more than MAX_RULES rules, an unknown pseudo-header, or a header name of more than 255 bytes.
    """

    def __init__(self, rules: Iterable[RouteRule], *, scheme: str = "http") -> None: ...
    def steps(self, rules: Iterable[RouteRule], scheme: str = "http") -> Iterator[None]:
        """Build a table that `__new__` made, some hundred rules between two yields.

        Until the end it matches nothing. Raises the same errors as `__init__`.
        """
    @property
    def size(self) -> int: ...
    def targets(self) -> list[Any]:
        """Return the targets of all rules, in no particular order."""


class HostTable:
    """Targets by host name. entries: pairs of name (exact, `*.suffix`, or `*` for any) and target.

    Of equal names the first wins.
    """

    def __init__(self, entries: Iterable[tuple[str, object]]) -> None: ...
    def listed(self) -> tuple[Any, ...]:
        """Return all targets."""
    def get(self, host: str) -> Any:
        """Return the target for a host, which may have a port. None if no entry covers it."""
