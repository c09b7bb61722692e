"""Real servers from npm behind one endpoint, with the official TypeScript clients and the inspector in front of them.

`make node-peers` installs them below build/node; without them (or without Node.js) these tests are skipped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.federation_rig import children
from tests.end_to_end.mcp_sessions_rig import wait_for
from tests.end_to_end.peers_rig import INSPECTOR, MODULES, inspect

CLIENT = Path(__file__).resolve().parents[1] / "peers" / "federated_client.mjs"
ASKED = CLIENT.with_name("asked_client.mjs")
SERVERS = {"everything": "everything", "files": "filesystem", "memory": "memory", "thinking": "sequential-thinking"}

pytestmark = [
    pytest.mark.warm,
    pytest.mark.node,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        shutil.which("node") is None
        or not INSPECTOR.exists()
        or not all((MODULES / "@modelcontextprotocol" / f"server-{name}").exists() for name in SERVERS.values()),
        reason="run `make node-peers`",
    ),
]


@pytest.fixture
def federated(gateway: Callable[..., Any], tmp_path: Path) -> Any:
    """The servers, one process of each for each session. `files` may see `tmp_path` alone."""
    text = "gateways:\n  default: {port: {port}}\nmcp:\n  targets:\n"
    for name, package in SERVERS.items():
        script = MODULES / "@modelcontextprotocol" / f"server-{package}" / "dist" / "index.js"
        words = [str(script), *([str(tmp_path)] if name == "files" else [])]
        memory = f", env: {{MEMORY_FILE_PATH: {tmp_path / 'memory.jsonl'}}}" if name == "memory" else ""
        text += f"  - name: {name}\n    stdio: {{cmd: node, args: {json.dumps(words)}{memory}}}\n"
    return gateway(text, 2)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_typescript_client_uses_all_of_them(version: str, federated: Any, tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    done = subprocess.run(
        ["node", str(CLIENT), version, str(MODULES), f"{federated.url}/mcp", str(file)],
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name.split("_")[0] for name in found["tools"]} == set(SERVERS)
    assert len(found["tools"]) == len(set(found["tools"])) > 30
    assert found["prompts"]
    assert all(name.startswith("everything_") for name in found["prompts"])
    assert all(uri.split("+")[0] in SERVERS for uri in found["resources"]), found["resources"]
    assert "from ts" in found["echo"]
    assert found["file"] == file.read_text() == "kept"
    assert [entity["name"] for entity in found["graph"]["entities"]] == ["Ada"]
    assert found["outside"] is True
    assert found["progress"] == sorted(found["progress"])
    assert found["progress"]
    assert len(found["parallel"]) == 20
    assert all(str(n + 1) in text for n, text in enumerate(found["parallel"]))
    assert found["read"] is True
    assert "Unknown tool: nobody_has" in found["unknown"]
    wait_for(lambda: not children(federated, "server-"), 30)


def test_the_inspector_sees_all_of_them(federated: Any) -> None:
    url = f"{federated.url}/mcp"
    tools: Any = inspect(url, "--method", "tools/list")["tools"]
    assert {tool["name"].split("_")[0] for tool in tools} == set(SERVERS)
    answer: Any = inspect(url, "--method", "tools/call", "--tool-name", "everything_echo", "--tool-arg", "message=through")
    assert "through" in answer["content"][0]["text"]
    assert inspect(url, "--method", "prompts/list")["prompts"]
    resources: Any = inspect(url, "--method", "resources/list")["resources"]
    assert {one["uri"].split("+")[0] for one in resources} <= set(SERVERS)


def test_the_typescript_client_is_asked_without_a_session(federated: Any) -> None:
    """Revision 2026-07-28 in front of a server with sessions: what it asks in a call, the client's handlers answer."""
    tools = ["everything_trigger-elicitation-request", "everything_get-roots-list", "everything_trigger-sampling-request"]
    done = subprocess.run(
        ["node", str(ASKED), str(MODULES), f"{federated.url}/mcp", *tools],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    elicited, roots, sampled = json.loads(done.stdout.splitlines()[-1])
    assert "Ada" in elicited
    assert "file:///x" in roots
    assert "Paris" in sampled
    wait_for(lambda: not children(federated, "server-"), 30)
