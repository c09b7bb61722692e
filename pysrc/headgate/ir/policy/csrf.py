"""Protection against cross-site request forgery."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Csrf:
    """Origins (`scheme://host[:port]`) whose requests are accepted besides those of the request's own origin."""

    origins: tuple[str, ...] = ()
