"""Conditions on requests that select a route."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass

PathKind = Literal["exact", "prefix", "regex"]
ValueKind = Literal["exact", "regex"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathMatch:
    """A condition on the path. `prefix` matches whole path segments; `regex` must match the whole path."""

    kind: PathKind
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueMatch:
    """A condition on a header or a query parameter.

    Header names are in lower case and may be `:method`, `:path`, `:authority` or `:scheme`. `regex` must match the
    whole value; the pattern is known to compile in RE2.
    """

    name: str
    kind: ValueKind
    value: str


ANY_PATH = PathMatch(kind="prefix", value="/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A combination of conditions that must all hold. `method` is case-sensitive; None matches any method."""

    path: PathMatch = ANY_PATH
    method: str | None = None
    headers: tuple[ValueMatch, ...] = ()
    query: tuple[ValueMatch, ...] = ()


ANY_REQUEST = Match()
