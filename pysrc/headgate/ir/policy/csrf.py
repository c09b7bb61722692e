"""Requests that other sites may send."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Csrf:
    """`origins`: scheme://host[:port] beside the request's own."""

    origins: tuple[str, ...] = ()
