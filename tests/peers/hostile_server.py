"""An MCP server over stdio whose every word is markup: what it says must be shown as text."""

from __future__ import annotations

import json
import sys

EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
TOOL = {
    "name": "evil",
    "title": f"Evil {EVIL}",
    "description": EVIL,
    "inputSchema": {
        "type": "object",
        "properties": {
            "__proto__": {"type": "string", "description": EVIL},
            EVIL: {"type": "string", "enum": [EVIL, "javascript:alert(1)"]},
        },
        "required": [EVIL],
    },
}


def result(method: str) -> dict[str, object]:
    if method == "initialize":
        info = {"name": f"hostile {EVIL}", "version": EVIL}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [TOOL]}
    return {"content": [{"type": "text", "text": EVIL}, {"type": "resource_link", "uri": "javascript:alert(1)", "name": EVIL}]}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result(message["method"])}
        print(json.dumps(answer), flush=True)
