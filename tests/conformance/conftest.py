"""Fixtures of suites that run against a whole gateway."""

from __future__ import annotations

from tests.end_to_end.conftest import gateway, resting

__all__ = ["gateway", "resting"]
