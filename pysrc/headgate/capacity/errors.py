"""What ends a measurement before it has a result."""

from __future__ import annotations


class BenchError(Exception):
    """A measurement that cannot be made, with what its user can do about it."""
