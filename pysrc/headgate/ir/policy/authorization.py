"""Authorization of requests by expressions."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """Rules as expressions.

    A request is refused if a `deny` is not false, if a `require` does not hold, or if there are `allow` rules and none
    of them holds.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    require: tuple[str, ...] = ()

    def __add__(self, other: Authorization) -> Authorization:
        """Return the combined rules of two levels."""
        return Authorization(
            allow=self.allow + other.allow, deny=self.deny + other.deny, require=self.require + other.require
        )
