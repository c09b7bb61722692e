"""The configurations on the page of MCP load as they stand."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.config.load import TextSource, load
from headgate.ir.mcp import McpBackend

PAGE = (Path(__file__).parents[2] / "docs/mcp.md").read_text()


def test_examples_load() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert blocks
    for text in blocks:
        [choice] = load(TextSource(text), environ={}).gateway.binds[0].listeners[0].routes[0].backends
        assert isinstance(choice.backend, McpBackend)
        assert choice.backend.prefixed or choice.backend.guardrails or len(choice.backend.targets) == 1
