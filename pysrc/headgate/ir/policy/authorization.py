"""Who may pass."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """Expressions. A `deny` that is not false refuses, every `require` must hold, and one `allow` if there are any."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    require: tuple[str, ...] = ()

    def __add__(self, other: Authorization) -> Authorization:
        """Return the rules of two levels together."""
        return Authorization(
            allow=self.allow + other.allow, deny=self.deny + other.deny, require=self.require + other.require
        )
