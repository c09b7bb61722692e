"""Cross-origin requests."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cors:
    """Origins are `*` or `scheme://host[:port]` with stars in the host; `max_age_s` None sends none."""

    origins: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()
    credentials: bool = False
    max_age_s: int | None = None
