"""What tests of mcp telemetry and others share."""

from __future__ import annotations

import json
import time
from typing import Any


def lines(running: Any, method: str, count: int = 1) -> list[dict[str, Any]]:
    """The lines of requests with a method, once there are so many."""
    deadline = time.monotonic() + 40
    while True:
        found = [json.loads(line) for line in running.log().splitlines() if line.startswith("{") and line.endswith("}")]
        found = [line for line in found if line.get("mcp.method.name") == method]
        if len(found) >= count:
            return found
        assert time.monotonic() < deadline, running.log()[-3000:]
        time.sleep(0.02)
