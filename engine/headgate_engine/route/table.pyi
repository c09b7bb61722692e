from collections.abc import Iterable
from typing import Any

PATTERN_MEMORY: int
MAX_HOST: int
PSEUDO: tuple[str, ...]

def compile_pattern(text: str) -> Any:
    """Return a pattern that must match a whole value; ValueError when the linear-time engine cannot run it."""

class ValuePredicate:
    """One header or query condition."""

    def __init__(self, name: str, kind: str, text: str) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...

class RouteRule:
    """One match entry of one route.

    hostnames: exact or `*.suffix`, empty for any; path_kind: exact, prefix or regex; headers and query:
    (name, 'exact' | 'regex', text); target: what a match gives back; order: lower wins among equals.
    """

    def __init__(
        self,
        *,
        hostnames: Iterable[str] = (),
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
    @property
    def target(self) -> Any: ...
    @property
    def order(self) -> int: ...
    def rank(self) -> tuple[bool, int, int, int]: ...

class HostBucket:
    """The rules of one host name."""

    def __init__(self, rules: Iterable[RouteRule]) -> None: ...

class RouteTable:
    """Immutable; ValueError for a pattern that does not compile."""

    def __init__(self, rules: Iterable[RouteRule]) -> None: ...
    @property
    def size(self) -> int: ...
    def match(
        self, host: str, method: str, target: str, headers: Iterable[tuple[str, str]] = ()
    ) -> RouteRule | None:
        """Return the rule of a request given in parts, by the code of the request path."""

class HostTable:
    """entries: pairs of host name (exact, `*.suffix`, or `*` for any) and target."""

    def __init__(self, entries: Iterable[tuple[str, object]]) -> None: ...
    def get(self, host: str) -> Any: ...
