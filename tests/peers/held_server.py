"""An MCP server on standard input and output. Its tool `pid` tells its process id, and so does `hold`, once the file of
the first argument is there; it makes that file's neighbour `.held` when it is called.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

LOCK = threading.Lock()
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("pid", "hold")]
INFO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "held", "version": "1"}}


def answer(number: Any, result: dict[str, Any]) -> None:
    with LOCK:
        print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)


def call(number: Any, name: str) -> None:
    if name == "hold":
        Path(f"{sys.argv[1]}.held").touch()
    while name == "hold" and not Path(sys.argv[1]).exists():
        time.sleep(0.02)
    answer(number, {"content": [{"type": "text", "text": str(os.getpid())}], "isError": False})


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "tools/call":
        threading.Thread(target=call, args=(message["id"], message["params"]["name"]), daemon=True).start()
    else:
        answer(message["id"], {"initialize": INFO, "tools/list": {"tools": TOOLS}}.get(message["method"], {}))
