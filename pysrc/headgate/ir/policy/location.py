"""Where a credential is."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass

LocationKind = Literal["header", "query", "cookie", "expression"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """`name` of a header (lower case), query parameter or cookie; `prefix` of a header's value (with its blank); the
    text of an `expression`, which can only be read.
    """

    kind: LocationKind = "header"
    name: str = "authorization"
    prefix: str = "Bearer "
    expression: str = ""
