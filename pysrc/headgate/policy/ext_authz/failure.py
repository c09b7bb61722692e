"""The failure of an authorization service."""

from __future__ import annotations


class ServiceFailure(Exception):
    """The service has not decided. The text contains no secret."""
