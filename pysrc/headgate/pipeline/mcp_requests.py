"""`gw_mcp_requests_total`: MCP messages by method, target, what they are about, and route."""

from __future__ import annotations

from headgate.dialect.mcp.methods import METHODS
from headgate.telemetry.metrics import label_text
from headgate_engine.mcp.telemetry import RequestCounts
from headgate_engine.shared.segment import Segment

FAMILY = b"gw_mcp_requests_total"


class McpRequests(RequestCounts):
    """Counts the requests of one backend in one worker."""

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment, frozenset(METHODS))

    def series_key(self, method: str, kind: str, server: str, name: str, labels: str) -> bytes:
        """Return the key of a series; `labels` are those of the route."""
        own = {"method": method, "resource_type": kind, "server": server, "resource": name}
        return FAMILY + b"\0" + f"{label_text(own)},{labels}".encode("utf-8", "replace")
