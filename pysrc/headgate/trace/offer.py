"""Names that both sides of a watch use. Processes that trace nothing load only this module of the package."""

from __future__ import annotations

from typing import Final

# Key of the watchers' claims in the shared memory segment.
CLAIMS: Final = b"trace watchers"


class TooManyWatchers(Exception):
    """No further watcher is accepted: the limit is reached or the gateway drains. The argument gives the reason."""


class BadExpression(ValueError):
    """A watcher's expression does not compile; the argument gives the reason."""
