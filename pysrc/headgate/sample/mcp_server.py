"""A small MCP server: tools `echo`, `add` and `slow`, a prompt and a resource. Standard input and output, or `--http`.

Over HTTP it speaks StreamableHTTP with sessions; `--json` answers with JSON instead of event streams.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from headgate.sample.web import SampleRequest, SampleResponse, end_with_parent, run

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
INFO = {"name": "headgate-sample", "title": "Headgate sample server", "version": "0.1.0"}
PARSE_ERROR = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}
INVALID_REQUEST, INVALID_PARAMS = -32600, -32602
Notify = Callable[[dict[str, Any]], None]


def _schema(**properties: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }


TOOLS = [
    {"name": "echo", "description": "Gives the message back", "inputSchema": _schema(message="string")},
    {"name": "add", "description": "Adds two numbers", "inputSchema": _schema(a="number", b="number")},
    {"name": "slow", "description": "Takes its time and tells progress", "inputSchema": _schema(seconds="number")},
]
PROMPTS = [{"name": "greet", "description": "A greeting", "arguments": [{"name": "name", "required": True}]}]
RESOURCES = [{"uri": "sample://readme", "name": "readme", "mimeType": "text/plain"}]


class RpcError(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


async def call_tool(params: dict[str, Any], notify: Notify) -> dict[str, Any]:
    """Run a tool. Raises RpcError."""
    name, arguments = params.get("name"), params.get("arguments") or {}
    if name == "echo":
        text = f"Echo: {arguments.get('message', '')}"
    elif name == "add":
        try:
            text = str(arguments["a"] + arguments["b"])
        except (KeyError, TypeError):
            return {"content": [{"type": "text", "text": "a and b must be numbers"}], "isError": True}
    elif name == "slow":
        await _slow(float(arguments.get("seconds", 1)), (params.get("_meta") or {}).get("progressToken"), notify)
        text = "done"
    else:
        raise RpcError(-32602, f"Unknown tool: {name}")
    return {"content": [{"type": "text", "text": text}], "isError": False}


async def _slow(seconds: float, token: object, notify: Notify) -> None:
    steps = 5
    for step in range(1, steps + 1):
        await asyncio.sleep(min(seconds, 60) / steps)
        if token is not None:
            params = {"progressToken": token, "progress": step, "total": steps}
            notify({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


async def respond(method: str, params: dict[str, Any], notify: Notify) -> dict[str, Any]:
    """Return the result of a request; raises RpcError."""
    if method == "initialize":
        wanted = params.get("protocolVersion")
        version = wanted if wanted in VERSIONS else VERSIONS[-1]
        capabilities: dict[str, Any] = {"tools": {}, "prompts": {}, "resources": {}, "logging": {}}
        return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": INFO}
    if method in ("ping", "logging/setLevel"):
        return {}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return await call_tool(params, notify)
    if method == "prompts/list":
        return {"prompts": PROMPTS}
    if method == "prompts/get" and params.get("name") == "greet":
        text = f"Say hello to {(params.get('arguments') or {}).get('name', 'the world')}."
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
    if method == "resources/list":
        return {"resources": RESOURCES}
    if method == "resources/templates/list":
        return {"resourceTemplates": []}
    if method == "resources/read" and params.get("uri") == "sample://readme":
        return {"contents": [{"uri": "sample://readme", "mimeType": "text/plain", "text": "This is a sample."}]}
    if method in ("prompts/get", "resources/read"):
        raise RpcError(-32602, "no such prompt or resource")
    raise RpcError(-32601, f"Method not found: {method}")


def failure(key: object, code: int, text: str) -> dict[str, Any]:
    """Return an error response."""
    return {"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": text}}


async def answer(message: object, notify: Notify) -> dict[str, Any] | None:
    """Return the response to a message, None if the message needs none (JSON-RPC 2.0 sections 4 and 5)."""
    if not isinstance(message, dict):
        return failure(None, INVALID_REQUEST, "Invalid Request")
    if "id" not in message or "method" not in message:
        return None
    key, method, params = message["id"], message["method"], message.get("params", {})
    if not isinstance(method, str):
        return failure(key, INVALID_REQUEST, "Invalid Request")
    if not isinstance(params, dict):
        return failure(key, INVALID_PARAMS, "params must be an object")
    try:
        return {"jsonrpc": "2.0", "id": key, "result": await respond(method, params, notify)}
    except RpcError as error:
        return failure(key, error.code, str(error))
    except (TypeError, ValueError, AttributeError, OverflowError):
        return failure(key, INVALID_PARAMS, "Invalid params")


# -- standard input and output ---------------------------------------------------------------------------------------
def write_line(message: dict[str, Any]) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
    sys.stdout.flush()


async def serve_stdio() -> None:
    """Serve until standard input is closed."""
    reader = asyncio.StreamReader(limit=16 * 1024 * 1024)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    by_id: dict[str, asyncio.Task[None]] = {}        # keyed by the JSON text of the id, which may be of any type
    # The group owns the tasks, also those whose id another request has used again.
    async with asyncio.TaskGroup() as group:
        tasks: set[asyncio.Task[None]] = set()
        while line := await reader.readline():
            try:
                message = json.loads(line)
            except ValueError:
                write_line(PARSE_ERROR)
                continue
            if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
                params = message.get("params")
                wanted = params.get("requestId") if isinstance(params, dict) else None
                task = by_id.get(json.dumps(wanted))
                if task is not None:
                    task.cancel()
                continue
            key = json.dumps(message.get("id")) if isinstance(message, dict) else ""
            by_id[key] = task = group.create_task(_one(message))
            tasks.add(task)
            task.add_done_callback(partial(_forget, by_id, key))
            task.add_done_callback(tasks.discard)
        for task in list(tasks):
            task.cancel()


def _forget(tasks: dict[str, asyncio.Task[None]], key: str, task: asyncio.Task[None]) -> None:
    if tasks.get(key) is task:
        del tasks[key]


async def _one(message: object) -> None:
    response = await answer(message, write_line)
    if response is not None:
        write_line(response)


# -- StreamableHTTP ----------------------------------------------------------------------------------------------------
class HttpFront:
    """Sessions and event streams over HTTP."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._sessions: set[str] = set()

    async def handle(self, request: SampleRequest) -> SampleResponse:
        """Answer one request."""
        session = request.header("mcp-session-id")
        if request.method == "DELETE":
            known = session in self._sessions
            self._sessions.discard(session or "")
            return SampleResponse(status=200 if known else 404)
        if request.method == "GET":
            if session not in self._sessions:
                return SampleResponse(status=404)
            return SampleResponse(content_type="text/event-stream", stream=_silence())
        if request.method != "POST":
            return SampleResponse(status=405)
        try:
            message = json.loads(request.body)
        except ValueError:
            return SampleResponse(
                status=400, body=b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
            )
        headers = []
        if not isinstance(message, dict):
            return SampleResponse(status=400, body=json.dumps(await answer(message, lambda _note: None)).encode())
        if message.get("method") == "initialize":
            session = secrets.token_urlsafe(16)
            self._sessions.add(session)
            headers.append(("mcp-session-id", session))
        elif session not in self._sessions:
            return SampleResponse(status=404 if session else 400)
        if "id" not in message or "method" not in message:
            return SampleResponse(status=202)
        if self._as_json:
            response = await answer(message, lambda _note: None)
            return SampleResponse(body=json.dumps(response).encode(), headers=headers)
        return SampleResponse(content_type="text/event-stream", headers=headers, stream=_events(message))


async def _silence() -> AsyncIterator[bytes]:
    while True:
        yield b": waiting\n\n"
        await asyncio.sleep(15)


async def _events(message: dict[str, Any]) -> AsyncIterator[bytes]:
    queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    async def work() -> None:
        try:
            queue.put_nowait(await answer(message, queue.put_nowait))
        finally:
            queue.put_nowait(None)

    task = asyncio.get_running_loop().create_task(work())
    try:
        while (event := await queue.get()) is not None:
            yield b"event: message\ndata: " + json.dumps(event).encode() + b"\n\n"
        await task
    finally:
        task.cancel()


def main() -> None:
    """Run `python -m headgate.sample.mcp_server`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", metavar="HOST:PORT", help="serve StreamableHTTP instead of stdio; port 0 is any")
    parser.add_argument("--json", action="store_true", help="answer over HTTP with JSON, not event streams")
    parser.add_argument("--end-with-parent", action="store_true")
    options = parser.parse_args()
    if options.end_with_parent:
        end_with_parent()
    if options.http is None:
        asyncio.run(serve_stdio())
    else:
        host, _, port = options.http.rpartition(":")
        asyncio.run(run([("mcp", HttpFront(options.json).handle, host, int(port))]))


if __name__ == "__main__":
    main()
