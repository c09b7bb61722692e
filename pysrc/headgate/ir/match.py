"""What a request must look like to take a route."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass

PathKind = Literal["exact", "prefix", "regex"]
ValueKind = Literal["exact", "regex"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathMatch:
    """`prefix` matches on segment borders; `regex` must match the whole path."""

    kind: PathKind
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueMatch:
    """A header (name in lower case, pseudo-headers `:method :path :authority :scheme` allowed) or a query
    parameter.

    `regex` must match the whole value; patterns were checked to compile in the linear-time engine.
    """

    name: str
    kind: ValueKind
    value: str


ANY_PATH = PathMatch(kind="prefix", value="/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """All of it must hold. `method` None means any; it is compared byte by byte."""

    path: PathMatch = ANY_PATH
    method: str | None = None
    headers: tuple[ValueMatch, ...] = ()
    query: tuple[ValueMatch, ...] = ()


ANY_REQUEST = Match()
