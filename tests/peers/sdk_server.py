"""A server of the official SDK over HTTP. Arguments: `sse` or `http`, its name, a port (0: any). Prints `port <n>`.

Besides what servers do it tells the fields of the requests it got (`seen`) and ends when it is told to (`exit`).
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import SamplingMessage, TextContent

KIND, NAME, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])
SEEN: list[dict[str, Any]] = []
server = MCPServer(NAME, instructions=f"I am {NAME}.")


@server.tool()
def echo(text: str) -> str:
    return f"{NAME}: {text}"


@server.tool()
def seen() -> str:
    return json.dumps(SEEN)


@server.tool()
async def progress(steps: int, ctx: Context[Any]) -> str:
    for number in range(steps):
        await ctx.report_progress(number + 1, steps, f"step {number + 1}")
    return "done"


@server.tool()
async def sample(ctx: Context[Any]) -> str:
    message = SamplingMessage(role="user", content=TextContent(type="text", text="say something"))
    answer = await ctx.session.create_message([message], max_tokens=10)
    return f"{NAME} heard {getattr(answer.content, 'text', '?')}"


@server.tool()
async def slow() -> str:
    SEEN.append({"began": "slow"})
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        SEEN.append({"cancelled": "slow"})
        raise
    return "too late"


@server.tool()
def exit() -> str:
    os._exit(3)


@server.resource("note://one")
def one() -> str:
    return f"note of {NAME}"


@server.prompt()
def hello() -> str:
    return f"hello from {NAME}"


class Noting:
    """Notes method, path and fields of every request."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            fields = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
            SEEN.append({"method": scope["method"], "path": scope["path"], "headers": fields})
        await self.app(scope, receive, send)


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", PORT))
    print("port", listener.getsockname()[1], flush=True)
    app = server.sse_app() if KIND == "sse" else server.streamable_http_app()
    settings = uvicorn.Config(Noting(app), log_level="warning", timeout_graceful_shutdown=1)
    asyncio.run(uvicorn.Server(settings).serve([listener]))
