"""What tests of modern and others share."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests import forked_rig

ROOT = Path(__file__).resolve().parents[2]
NEW = "2026-07-28"
SPACE = "io.modelcontextprotocol/"
META = {SPACE + "protocolVersion": NEW, SPACE + "clientCapabilities": {}}
ACCEPT = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri",
         **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId")}  # fmt: skip
SAMPLE = f'stdio: {{cmd: {json.dumps(sys.executable)}, args: ["-m", "headgate.sample.mcp_server"]}}'
Started = Callable[..., int]


def process(*words: str) -> str:
    """The conformant server as a child process."""
    script = f"cd {ROOT} && exec {sys.executable} -m tests.peers.conformant {' '.join(words)}"
    return f"stdio: {{cmd: /bin/sh, args: [-c, {json.dumps(script)}]}}"


def remote(port: int) -> str:
    return f'mcp: {{host: "127.0.0.1:{port}"}}'


def config(more: str = "", **targets: str) -> str:
    lines = [f"  - name: {name}\n    {target}" for name, target in targets.items()]
    return "gateways:\n  default: {port: {port}}\nmcp:\n" + more + "  targets:\n" + "\n".join(lines) + "\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Started]:
    """`server("--only", "new")` starts the conformant server; its port."""
    with contextlib.ExitStack() as stack:
        errors = stack.enter_context((tmp_path / "server.log").open("wb"))

        def start(*words: str) -> int:
            words = ("--http", "127.0.0.1:0", *words)
            one = forked_rig.start("tests.peers.conformant", words, subprocess.PIPE, errors)
            stack.callback(one.wait, 60)
            stack.callback(one.terminate)
            assert one.stdout is not None
            return int(one.stdout.readline().split()[1])

        yield start


class Modern:
    """A client of revision 2026-07-28."""

    def __init__(self, running: Any) -> None:
        self.http = httpx.Client(base_url=running.url, headers=ACCEPT, timeout=30)
        self.id = 0

    def message(self, method: str, meta: dict[str, Any] = META, /, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
        self.id += 1
        fields = {"mcp-protocol-version": NEW, "mcp-method": method}
        if method in NAMED:
            fields["mcp-name"] = params[NAMED[method]]
        return {"jsonrpc": "2.0", "id": self.id, "method": method, "params": {**params, "_meta": meta}}, fields

    def post(self, method: str, meta: dict[str, Any] = META, /, **params: Any) -> httpx.Response:
        body, fields = self.message(method, meta, **params)
        return self.http.post("/mcp", json=body, headers=fields)

    def ask(self, method: str, meta: dict[str, Any] = META, /, **params: Any) -> dict[str, Any]:
        answer = self.post(method, meta, **params)
        assert "mcp-session-id" not in answer.headers
        found = messages(answer)[-1]
        assert found["id"] == self.id
        return found

    def text(self, tool: str, meta: dict[str, Any] = META, /, **arguments: Any) -> str:
        found = self.ask("tools/call", meta, name=tool, arguments=arguments)
        return str(found["result"]["content"][0]["text"]) if "result" in found else str(found["error"])


def messages(answer: httpx.Response) -> list[dict[str, Any]]:
    if answer.headers.get("content-type") == "application/json":
        return [answer.json()]
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]


class Listening:
    """A `subscriptions/listen` that is read on the side."""

    def __init__(self, client: Modern, **notifications: Any) -> None:
        self.lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        body, fields = client.message("subscriptions/listen", notifications=notifications)
        self.id = body["id"]
        self._http = httpx.Client(base_url=client.http.base_url, headers=ACCEPT, timeout=60)
        self._thread = threading.Thread(target=self._read, args=(body, fields), daemon=True)
        self._thread.start()

    def _read(self, body: dict[str, Any], fields: dict[str, str]) -> None:
        with (
            contextlib.suppress(httpx.HTTPError),
            self._http.stream("POST", "/mcp", json=body, headers=fields) as answer,
        ):
            if answer.headers.get("content-type") == "application/json":
                self.lines.put(json.loads(answer.read()))
            for line in answer.iter_lines():
                if line.startswith("data: {"):
                    self.lines.put(json.loads(line[6:]))
        self.lines.put(None)

    def next(self) -> dict[str, Any] | None:
        return self.lines.get(timeout=30)

    def acknowledged(self) -> dict[str, Any]:
        found = self.next()
        assert found is not None
        assert found["method"] == "notifications/subscriptions/acknowledged", found
        assert found["params"]["_meta"] == {SPACE + "subscriptionId": self.id}
        return dict(found["params"]["notifications"])
