"""Programs others wrote, from npm: the everything server behind the gateway, the inspector in front of it.

`make node-peers` installs them below build/node; without them (or without Node.js) these tests are skipped.
"""

from __future__ import annotations

import json
import shutil
import sys

import pytest
from tests.end_to_end.peers_rig import INSPECTOR, MODULES, inspect

EVERYTHING = MODULES / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"

pytestmark = [
    pytest.mark.warm,
    pytest.mark.node,
    pytest.mark.skipif(shutil.which("node") is None or not INSPECTOR.exists(), reason="run `make node-peers`"),
]


def config(command: str, *arguments: str) -> str:
    words = ", ".join(json.dumps(word) for word in arguments)
    return f"""
gateways:
  default: {{port: {{port}}}}
mcp:
  targets:
  - name: target
    stdio: {{cmd: {json.dumps(command)}, args: [{words}]}}
"""




@pytest.mark.timeout(600)
def test_the_inspector_lists_and_calls_the_sample_server(gateway) -> None:
    running = gateway(config(sys.executable, "-m", "headgate.sample.mcp_server"), workers=2)
    tools = inspect(f"{running.url}/mcp", "--method", "tools/list")["tools"]
    assert [tool["name"] for tool in tools] == ["echo", "add", "slow"]  # type: ignore[attr-defined]
    result = inspect(
        f"{running.url}/mcp", "--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hello"
    )
    assert result["content"][0]["text"] == "Echo: hello"  # type: ignore[index]


@pytest.mark.timeout(600)
def test_the_inspector_uses_the_everything_server_through_the_gateway(gateway) -> None:
    running = gateway(config("node", str(EVERYTHING)), workers=2)
    tools = inspect(f"{running.url}/mcp", "--method", "tools/list")["tools"]
    assert "echo" in [tool["name"] for tool in tools]  # type: ignore[attr-defined]
    result = inspect(
        f"{running.url}/mcp", "--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=through"
    )
    assert "through" in result["content"][0]["text"]  # type: ignore[index]
    assert inspect(f"{running.url}/mcp", "--method", "prompts/list")["prompts"]
    assert inspect(f"{running.url}/mcp", "--method", "resources/list")["resources"]
