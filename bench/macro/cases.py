"""The cases: what is asked, of whom, with how many connections, and what a right answer is."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from bench.macro.identity import token

ROUTES = 10_000
CHUNKS = 50


class Case(NamedTuple):
    """`setting` names the configuration of the proxies (peers.py), which also decides the backend.

    `paths` are asked in turn. A right answer has status 200, `answer` as its whole body when given, and `parts`:
    (text, how often it occurs). `session` opens an MCP session first and sends its id with every request.
    """

    name: str
    title: str
    setting: str
    paths: tuple[str, ...]
    body: bytes | None
    connections: tuple[int, ...]
    peers: tuple[str, ...]
    answer: bytes | None = None
    parts: tuple[tuple[bytes, int], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    session: bool = False

    def of(self, chosen: Collection[str]) -> list[str]:
        """Return which of the chosen peers take part. The one-file program does wherever the installed one does."""
        found = [name for peer in self.peers for name in ((peer, ONE_FILE) if peer == "headgate" else (peer,))]
        return [name for name in found if name in chosen]


ONE_FILE = "headgate-one-file"
PLAIN = ("direct", "nginx", "nginx-log", "haproxy", "envoy", "headgate", "headgate-quiet")
OURS = ("headgate", "headgate-quiet")
GATEWAY = ("direct", "nginx", "headgate", "headgate-quiet")
JSON = (("content-type", "application/json"),)
MCP = (*JSON, ("accept", "application/json, text/event-stream"))
ONE, FEW, MANY = 1, 32, 512
# A paced stream costs little: enough of them to measure it.
SLOW = 128
BOTH = (FEW, MANY)


def chat(stream: bool, gap_ms: int = 0) -> bytes:
    """A chat request of exactly 1 KiB. gap_ms: pause of the backend between two events of the stream."""
    head = b'{"model":"gpt-4","user":"gap-%d","stream":%s,' % (gap_ms, b"true" if stream else b"false")
    head += b'"messages":[{"role":"user","content":"'
    tail = b'"}]}'
    return head + b"x" * (1024 - len(head) - len(tail)) + tail


def message(stream: bool, gap_ms: int = 0) -> bytes:
    """What chat() asks, as a Messages client asks it."""
    user = b'"user":"gap-%d",' % gap_ms
    return chat(stream, gap_ms).replace(user, b'"max_tokens":320,"metadata":{"user_id":"gap-%d"},' % gap_ms)


def route(number: int) -> str:
    """Path prefix of route `number` of the 10,000."""
    return f"/team{number % 8}/service{number}"


def named(call: bytes, name: str) -> bytes:
    """A tool call of a tool with another name."""
    return call.replace(b'"name":"ping"', f'"name":"{name}"'.encode())


TOOL_CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ping","arguments":{"text":"hello"}}}'
TOOL_LIST = b'{"jsonrpc":"2.0","id":7,"method":"tools/list"}'
# Every tenth of the 100 routes of the policies case.
GUARDED = tuple(f"/v1/service{number}/items" for number in range(0, 100, 10))
SPREAD = tuple(f"{route(number)}/v1/items" for number in range(0, ROUTES, ROUTES // 200))
# All of them; the step has no divisor in common with their number, so that neighbours are not asked one after the other.
EVEN = tuple(f"{route(number * 7919 % ROUTES)}/v1/items" for number in range(ROUTES))

CASES = (
    Case("get-small", "GET, 6 B", "plain", ("/small",), None, BOTH, PLAIN, b"x" * 6),
    Case("post-1k", "POST 1 KiB / 1 KiB", "plain", ("/1k",), b"x" * 1024, BOTH, PLAIN, b"x" * 1024),
    Case("post-16k", "POST 16 KiB / 16 KiB", "plain", ("/16k",), b"x" * 16384, BOTH, PLAIN, b"x" * 16384),
    Case("routes-10k", "GET through 10,000 routes", "routes", SPREAD, None, (FEW,),
         ("nginx", "nginx-log", "haproxy", "headgate"), b"hello\n"),
    Case("routes-10k-even", "GET, each of 10,000 routes in turn", "routes", EVEN, None, (FEW,),
         ("nginx", "nginx-log", "haproxy", "headgate"), b"hello\n"),
    Case("edits", "GET, 7 edits of request headers and 3 of response headers", "edits", ("/small",), None, (FEW,),
         ("nginx", "nginx-log", "headgate"), b"x" * 6, headers=(("x-drop-me", "1"), ("x-old", "a"), ("accept", "*/*"))),
    Case("quiet", "GET, 6 B, no access log", "quiet", ("/small",), None, (FEW,), ("headgate",), b"x" * 6),
    Case("log-json", "GET, 6 B, JSON access log", "log-json", ("/small",), None, (FEW,), ("headgate",), b"x" * 6),
    Case("ids", "GET, 6 B, no access log, request ids", "ids", ("/small",), None, (FEW,), ("headgate",), b"x" * 6),
    Case("traced-1", "GET, 6 B, no access log, one of 100 traced", "traced-1", ("/small",), None, (FEW,), ("headgate",), b"x" * 6),
    Case("traced", "GET, 6 B, no access log, all traced", "traced", ("/small",), None, (FEW,), ("headgate",), b"x" * 6),
    Case("policies", "GET with JWT, CEL, limit, header change, JSON log; one of 100 routes", "policies", GUARDED, None,
         (FEW,), ("nginx", "headgate"), b"hello\n", headers=(("authorization", f"Bearer {token()}"),)),
    Case("llm-chat-1k", "LLM chat, 1 KiB", "llm", ("/v1/chat/completions",), chat(stream=False), (FEW,), GATEWAY,
         parts=((b'"total_tokens": 320', 1), (b"word ", 170)), headers=JSON),
    Case("llm-translated-1k", "LLM chat, 1 KiB, Messages client at an OpenAI provider", "llm", ("/v1/messages",), message(stream=False),
         (FEW,), OURS, parts=((b'"output_tokens":', 1), (b"word ", 170)), headers=JSON),
    Case("sse-50", "LLM stream of 50 events", "llm", ("/v1/chat/completions",), chat(stream=True), (FEW,), GATEWAY,
         parts=((b'"content":"token ', CHUNKS), (b"data: [DONE]\n\n", 1)), headers=JSON),
    Case("sse-50-paced", "LLM stream of 50 events, 2 ms apart", "llm", ("/v1/chat/completions",),
         chat(stream=True, gap_ms=2), (SLOW,), GATEWAY,
         parts=((b'"content":"token ', CHUNKS), (b"data: [DONE]\n\n", 1)), headers=JSON),
    Case("sse-to-messages-50", "LLM stream of 50 events, Messages client at an OpenAI provider", "llm", ("/v1/messages",),
         message(stream=True), (FEW,), OURS,
         parts=((b'"text_delta","text":"token ', CHUNKS), (b'"type":"message_stop"', 1)), headers=JSON),
    Case("sse-to-chat-50", "LLM stream of 50 events, chat client at an Anthropic provider", "llm-anthropic",
         ("/v1/chat/completions",), chat(stream=True), (FEW,), OURS,
         parts=((b'"content":"token ', CHUNKS), (b"data: [DONE]\n\n", 1)), headers=JSON),
    Case("sse-to-messages-50-paced", "LLM stream of 50 events, 2 ms apart, Messages client at an OpenAI provider", "llm",
         ("/v1/messages",), message(stream=True, gap_ms=2), (SLOW,), OURS,
         parts=((b'"text_delta","text":"token ', CHUNKS), (b'"type":"message_stop"', 1)), headers=JSON),
    Case("mcp-call", "MCP tools/call", "mcp", ("/mcp",), TOOL_CALL, (FEW,), GATEWAY,
         parts=((b'"id":7', 1), (b'"pong"', 1)), headers=MCP, session=True),
    Case("mcp-call-federated", "MCP tools/call of one of two targets", "mcp-2", ("/mcp",), named(TOOL_CALL, "t1_ping"), (FEW,),
         OURS, parts=((b'"id":7', 1), (b'"pong"', 1)), headers=MCP, session=True),
    Case("mcp-list-1000", "MCP tools/list over 20 targets with 50 tools each", "mcp-20", ("/mcp",), TOOL_LIST, (ONE,), OURS,
         parts=((b'"name":"t19_tool49"', 1), (b'"inputSchema"', 1000)), headers=MCP, session=True),
)  # fmt: skip
BY_NAME = {case.name: case for case in CASES}
