"""`extProc` in front of models and of MCP servers."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.ext_authz_rig import shown
from tests.end_to_end.ext_proc_rig import BodyBackend, ProcessorPeer, unchanged
from tests.end_to_end.federation_rig import SAMPLE, Raw, config, messages

pytestmark = pytest.mark.warm

MODES = ("none", "buffered", "bufferedPartial", "fullDuplexStreamed")


LLM = """
llm:
  port: {{port}}
  models:
  - name: "*"
    provider: anthropic
    params: {{baseUrl: "http://127.0.0.1:{provider}"}}
  policies:
    extProc: {policy}
"""
MCP = """
gateways:
  default: {{port: {{port}}}}
routes:
- name: tools
  policies:
    extProc: {policy}
  backends:
  - mcp:
      targets:
      - name: echo
        mcp: {{host: "http://127.0.0.1:{server}/mcp"}}
"""


@pytest.mark.parametrize("mode", MODES)
def test_models_are_processed_in_the_format_of_the_client(
    gateway: Any, processor: ProcessorPeer, backend: BodyBackend, mode: str
) -> None:
    """Requests before they are translated, answers and streams behind it."""
    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part.endswith("_body") and mode != "fullDuplexStreamed":
            yield {part: {}}
        else:
            yield from unchanged(part, message)

    processor.react = react
    policy = shown({
        "host": f"127.0.0.1:{processor.port}",
        "processingOptions": {"requestBodyMode": mode, "responseBodyMode": mode},
    })  # fmt: skip
    running = gateway(LLM.format(policy=policy, provider=backend.port))
    told = {"role": "assistant", "content": [{"type": "text", "text": "hello"}], "usage": {"input_tokens": 3, "output_tokens": 1}}
    backend.fields = [("content-type", "application/json")]
    backend.chunks = lambda: [json.dumps({"id": "m", "type": "message", "model": "x", "stop_reason": "end_turn", **told}).encode()]
    ask = {"model": "x", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    for path in ("/v1/chat/completions", "/v1/messages"):
        answer = httpx.post(running.url + path, json=ask)
        assert answer.status_code == 200, answer.text
        assert "hello" in answer.text
        assert ("choices" in answer.json()) is (path == "/v1/chat/completions")
        if mode != "none":
            seen = b"".join(
                base64.b64decode(one["response_body"].get("body", "")) for one in processor.seen[-1] if "response_body" in one
            )
            assert json.loads(seen) == answer.json()
    events = [
        {"type": "message_start", "message": {"id": "m", "model": "x", **told, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": f"w{n} "}} for n in range(50)),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 50}},
        {"type": "message_stop"},
    ]  # fmt: skip
    backend.fields = [("content-type", "text/event-stream")]
    backend.chunks = lambda: [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events]
    for path in ("/v1/chat/completions", "/v1/messages"):
        answer = httpx.post(running.url + path, json={**ask, "stream": True})
        assert answer.status_code == 200, answer.text
        assert answer.text.count("w49 ") == 1
        assert answer.text.rstrip().endswith("data: [DONE]" if path == "/v1/chat/completions" else "}")


def test_models_clients_get_errors_in_their_format(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    processor.react = lambda part, message: iter([b"\xff"])
    policy = shown({"host": f"127.0.0.1:{processor.port}"})
    running = gateway(LLM.format(policy=policy, provider=backend.port))
    ask = {"model": "x", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    answer = httpx.post(running.url + "/v1/messages", json=ask)
    assert (answer.status_code, answer.json()["type"]) == (500, "error")
    assert answer.json()["error"]["message"].startswith("ext_proc failed: ")
    answer = httpx.post(running.url + "/v1/chat/completions", json=ask)
    assert answer.json()["error"]["message"].startswith("ext_proc failed: ")


@pytest.mark.parametrize("mode", MODES)
def test_tools_are_processed(gateway: Any, processor: ProcessorPeer, backend: BodyBackend, mode: str) -> None:
    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part.endswith("_body") and mode != "fullDuplexStreamed":
            yield {part: {}}
        else:
            yield from unchanged(part, message)

    def answer_of() -> list[bytes]:
        asked = json.loads(backend.seen[-1].body or b"{}")
        backend.status = 200 if "id" in asked else 202
        if "id" not in asked:
            return []
        if asked.get("method") == "initialize":
            info = {"name": "s", "version": "1"}
            result: Any = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        elif asked.get("method") == "tools/list":
            result = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
        else:
            result = {"content": [{"type": "text", "text": "from the tool"}]}
        return [json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), "result": result}).encode()]

    processor.react = react
    backend.fields, backend.chunks = [("content-type", "application/json")], answer_of
    policy = shown({
        "host": f"127.0.0.1:{processor.port}",
        "processingOptions": {"requestBodyMode": mode, "responseBodyMode": mode},
    })  # fmt: skip
    raw = Raw(gateway(MCP.format(policy=policy, server=backend.port)))
    assert raw.names("tools/list", "tools") == ["echo"]
    assert raw.text("echo") == "from the tool"
    assert "response_headers" in processor.parts


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_events_of_tools_are_processed(gateway: Any, processor: ProcessorPeer, mode: str, several: bool) -> None:
    """A process behind the gateway tells of its progress: an answer of several events, which the processor sees."""
    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part.endswith("_body") and mode != "fullDuplexStreamed":
            yield {part: {}}
        else:
            yield from unchanged(part, message)

    processor.react = react
    policy = shown({
        "host": f"127.0.0.1:{processor.port}",
        "processingOptions": {"requestBodyMode": mode, "responseBodyMode": mode},
    })  # fmt: skip
    targets = {"t": SAMPLE, "b": SAMPLE} if several else {"t": SAMPLE}
    raw = Raw(gateway(config(targets, f"  policies: {{extProc: {policy}}}\n")))
    params = {"name": "t_slow" if several else "slow", "arguments": {"seconds": 0.3}, "_meta": {"progressToken": "p"}}
    answer = raw.post({"id": 5, "method": "tools/call", "params": params})
    found = messages(answer)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [one["method"] for one in found[:-1]] == ["notifications/progress"] * (len(found) - 1)
    assert len(found) > 1
    assert found[-1]["result"]["content"]
    if mode != "none":
        seen = b"".join(
            base64.b64decode(one["response_body"].get("body", "")) for one in processor.seen[-1] if "response_body" in one
        )
        assert answer.content.startswith(seen) if mode == "bufferedPartial" else answer.content == seen
