"""What both sides of a watch know: apart from the rest, which a process that traces nothing does not load."""

from __future__ import annotations

from typing import Final

# Key of the claims in the shared segment.
CLAIMS: Final = b"trace watchers"


class TooManyWatchers(Exception):
    """As many wait as may, or the gateway drains; the argument says which."""


class BadExpression(ValueError):
    """A watcher's expression cannot be compiled; the argument says why."""
