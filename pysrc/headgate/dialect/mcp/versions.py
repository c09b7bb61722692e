"""Revisions of the protocol, oldest first (they compare as text), and the fields that carry them."""

from __future__ import annotations

from headgate.dialect.mcp.methods import METHODS as METHODS

KNOWN = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST = KNOWN[-1]
HEADER = "mcp-protocol-version"
SESSION_HEADER = "mcp-session-id"
