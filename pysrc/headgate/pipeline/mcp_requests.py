"""`gw_mcp_requests_total`: MCP messages by method, target, what they are about, and route."""

from __future__ import annotations

from headgate.backend.contract import Call
from headgate.backend.mcp.request_telemetry import RequestTelemetry
from headgate.dialect.mcp.methods import METHODS
from headgate.telemetry.metrics import label_text
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment

FAMILY = b"gw_mcp_requests_total"
UNKNOWN = "unknown"
OTHER = "other"
# Names of tools, prompts and resources with a label value of their own. A template makes URIs without number.
MAX_NAMES = 500
MAX_NAME = 256
# Counters that are remembered: a reload may give routes other names.
MAX_COUNTERS = 4096


class McpRequests:
    """Counts the requests of one backend in one worker."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._counters: dict[tuple[object, ...], Counter] = {}
        self._names: set[tuple[str | None, str]] = set()

    def count(self, call: Call, telemetry: RequestTelemetry) -> None:
        """Count a request. What clients make up is no label: unknown methods are one, names of failures none."""
        method = telemetry.method if telemetry.method in METHODS else OTHER
        kind = telemetry.kind or UNKNOWN
        name = self._name(telemetry)
        place = call.place
        key = (method, kind, telemetry.server, name, place)
        found = self._counters.get(key)
        if found is None:
            labels = {"method": method, "resource_type": kind, "server": telemetry.server or UNKNOWN, "resource": name}
            text = f"{label_text(labels)},{call.route_labels()}"
            found = Counter(self._segment, FAMILY + b"\0" + text.encode("utf-8", "replace"))
            if place is not None:
                if len(self._counters) >= MAX_COUNTERS:
                    self._counters.clear()
                self._counters[key] = found
        found.add()

    def _name(self, telemetry: RequestTelemetry) -> str:
        name = telemetry.name
        if name is None or telemetry.failed or telemetry.kind == "task":
            return UNKNOWN
        if len(name) > MAX_NAME:
            return OTHER
        if (telemetry.server, name) not in self._names:
            if len(self._names) >= MAX_NAMES:
                return OTHER
            self._names.add((telemetry.server, name))
        return name
