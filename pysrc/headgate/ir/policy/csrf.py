"""Requests that other sites may send."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Csrf:
    """`origins`: scheme://host[:port] beside the request's own."""

    origins: tuple[str, ...] = ()
