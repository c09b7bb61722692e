"""The sample MCP server against messages that are no proper ones."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from headgate.sample.mcp_server import HttpFront, answer
from headgate.sample.web import SampleRequest

CASES = [
    ([], -32600),
    ("text", -32600),
    (None, -32600),
    ({"id": 1, "method": 5}, -32600),
    ({"id": 1, "method": "tools/call", "params": []}, -32602),
    ({"id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": [1]}}, -32602),
    ({"id": 1, "method": "tools/call", "params": {"name": "slow", "arguments": {"seconds": "x"}}}, -32602),
    ({"id": 1, "method": "tools/call", "params": {"name": "none"}}, -32602),
    ({"id": 1, "method": "prompts/get", "params": {"name": "greet", "arguments": 7}}, -32602),
    ({"id": 1, "method": "none"}, -32601),
]


@pytest.mark.parametrize(("message", "code"), CASES, ids=str)
def test_every_fault_has_an_answer(message: object, code: int) -> None:
    response = asyncio.run(answer(message, lambda _note: None))
    assert response is not None
    assert response["error"]["code"] == code
    assert response["id"] == (message["id"] if isinstance(message, dict) else None)


def test_the_process_outlives_them_all() -> None:
    lines = [json.dumps(message) for message, _ in CASES] + ["not json", '{"method":"notifications/cancelled"}', "{}"]
    lines.append('{"jsonrpc":"2.0","id":{"a":[1]},"method":"ping"}')
    process = subprocess.Popen(
        [sys.executable, "-m", "headgate.sample.mcp_server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n".join(lines) + "\n")
    process.stdin.flush()
    found = [json.loads(process.stdout.readline()) for _ in range(len(CASES) + 2)]
    process.stdin.close()
    assert process.wait(10) == 0
    codes = sorted(one["error"]["code"] for one in found if "error" in one)
    assert codes == sorted([code for _, code in CASES] + [-32700])
    assert [one["id"] for one in found if "result" in one] == [{"a": [1]}]


@pytest.mark.parametrize("body", [b"[]", b"7", b'"x"', b"null"])
def test_over_http_a_message_is_an_object(body: bytes) -> None:
    reply = asyncio.run(HttpFront(True).handle(SampleRequest("POST", "/mcp", [], body)))
    assert reply.status == 400
    assert json.loads(reply.body)["error"]["code"] == -32600
