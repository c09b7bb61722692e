"""What tests of federation and others share."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from tests.end_to_end.processes import children_of, command_line

ASKING = Path(__file__).resolve().parents[1] / "peers" / "asking_server.py"
ACCEPT = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
SAMPLE = f'stdio: {{cmd: "{sys.executable}", args: ["-m", "headgate.sample.mcp_server"]}}'
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {"sampling": {}}, "clientInfo": {"name": "t", "version": "1"}}


def asking(name: str, *words: str) -> str:
    return f"stdio: {{cmd: {json.dumps(sys.executable)}, args: {json.dumps([str(ASKING), name, *words])}}}"


def config(targets: dict[str, str], more: str = "") -> str:
    lines = [f"  - name: {name}\n    {target}" for name, target in targets.items()]
    return "gateways:\n  default: {port: {port}}\nmcp:\n" + more + "  targets:\n" + "\n".join(lines) + "\n"


@asynccontextmanager
async def client(running: Any, **options: Any) -> AsyncIterator[ClientSession]:
    async with (
        streamable_http_client(f"{running.url}/mcp") as (read, write, *_),
        ClientSession(read, write, **options) as session,
    ):
        await session.initialize()
        yield session


class Raw:
    """A client that sends messages as they are written here."""

    def __init__(self, running: Any, **fields: str) -> None:
        self.running = running
        self.http = httpx.Client(base_url=running.url, headers={**ACCEPT, **fields}, timeout=60)
        self.id = 0
        answer = self.post({"id": 0, "method": "initialize", "params": INITIALIZE})
        self.opened = answer
        if answer.status_code == 200 and "mcp-session-id" in answer.headers:
            self.http.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
            assert self.post({"method": "notifications/initialized"}).status_code == 202

    @property
    def session(self) -> str:
        return str(self.http.headers["mcp-session-id"])

    def post(self, message: dict[str, Any]) -> httpx.Response:
        return self.http.post("/mcp", json={"jsonrpc": "2.0", **message})

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.id += 1
        answer = self.post({"id": self.id, "method": method, "params": params})
        found = messages(answer)[-1]
        assert found["id"] == self.id
        return found

    def names(self, method: str, key: str, name: str = "name") -> list[str]:
        return [item[name] for item in self.ask(method)["result"][key]]

    def text(self, tool: str, **arguments: Any) -> str:
        found = self.ask("tools/call", name=tool, arguments=arguments)
        return found["result"]["content"][0]["text"] if "result" in found else f"error {found['error']['message']}"


def messages(answer: httpx.Response) -> list[dict[str, Any]]:
    if answer.headers["content-type"] == "application/json":
        return [answer.json()]
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


def children(running: Any, word: str) -> list[int]:
    """Processes below a worker with `word` in their command line (from /proc: `ps` cuts lines at the width of the terminal)."""
    return [pid for worker in running.worker_pids() for pid in children_of(worker) if word in command_line(pid)]
