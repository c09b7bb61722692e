"""What tests of mcp guardrails and others share."""

from __future__ import annotations

import json
from typing import Any

ALL = "methods: {'*': full}"


def guarded(*ports: int, more: str = ALL, rules: str = "") -> str:
    processors = "".join(f"      - {{kind: remote, host: '127.0.0.1:{port}', {more}}}\n" for port in ports)
    return f"  policies:\n{rules}    mcpGuardrails:\n      processors:\n{processors}"


def changed(kind: Any, value: Any) -> Any:
    return kind(mutated=value if isinstance(value, bytes) else json.dumps(value).encode())
