"""Revisions of the protocol, oldest first, and the headers for them. Revisions can be compared as text.

Source: https://modelcontextprotocol.io/specification/versioning.
"""

from __future__ import annotations

from headgate.dialect.mcp.methods import METHODS as METHODS

MODERN = "2026-07-28"
"""The first revision without sessions: every request contains the data of `initialize`."""
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
KNOWN = (*LEGACY, MODERN)
HEADER = "mcp-protocol-version"
SESSION_HEADER = "mcp-session-id"


def is_modern(version: str | None) -> bool:
    """Return whether a revision has no sessions."""
    return version is not None and version >= MODERN
