"""Retry of failed attempts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """`attempts` 1..255 tries after the first one, `backoff_ms` apart.

    A response is tried again when its status is in `codes`; failed connections and late answers always are.
    """

    attempts: int = 1
    codes: tuple[int, ...] = ()
    backoff_ms: int = 0
