"""The location of a credential in a request."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass

LocationKind = Literal["header", "query", "cookie", "expression"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """The location of a credential.

    `name` is that of a header (in lower case), query parameter or cookie. `prefix` precedes the credential in a
    header's value and includes the blank. `expression` computes the credential, so it cannot be used to set one.
    """

    kind: LocationKind = "header"
    name: str = "authorization"
    prefix: str = "Bearer "
    expression: str = ""
