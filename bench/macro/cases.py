"""The cases: what is asked, how often at once, of whom."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """`backend`: web (nginx, canned bodies) or ai (backend.py). `peers`: who takes part."""

    name: str
    backend: str
    path: str
    body: bytes | None
    connections: tuple[int, ...]
    peers: tuple[str, ...]
    headers: tuple[tuple[str, str], ...] = ()


PLAIN = ("direct", "nginx", "haproxy", "envoy", "headgate")
JSON = (("content-type", "application/json"),)
MESSAGE = b"x" * 940
CHAT = b'{"model":"gpt-4","messages":[{"role":"user","content":"' + MESSAGE + b'"}]}'
STREAM = b'{"model":"gpt-4","stream":true,"messages":[{"role":"user","content":"' + MESSAGE + b'"}]}'
TOOL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ping","arguments":{"text":"hello"}}}'
MCP = (*JSON, ("accept", "application/json, text/event-stream"), ("mcp-session-id", "bench"))

CASES = (
    Case("get-small", "web", "/small", None, (32, 512), PLAIN),
    Case("post-1k", "web", "/1k", b"x" * 1024, (32, 512), PLAIN),
    Case("post-16k", "web", "/16k", b"x" * 16384, (32, 512), PLAIN),
    Case("routes-10k", "web", "/team7/service9999/v1/items", None, (32,), ("headgate",)),
    Case("llm-chat-1k", "ai", "/v1/chat/completions", CHAT, (32,), ("direct", "nginx", "headgate"), JSON),
    Case("sse-50", "ai", "/v1/chat/completions", STREAM, (32,), ("direct", "nginx", "headgate"), JSON),
    Case("mcp-call", "ai", "/mcp", TOOL, (32,), ("direct", "nginx", "headgate"), MCP),
)
