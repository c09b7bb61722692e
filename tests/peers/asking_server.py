"""An MCP server on standard input and output that does what the sample server does not: it asks the client, pages its
lists, tells of changes, completes, and ends when it is told to. Arguments: its name, and words: `noprompts`, `badinit`, `june` (its revision).
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

NAME, WORDS = sys.argv[1], set(sys.argv[2:])
LOCK = threading.Lock()
ANSWERS: dict[Any, dict[str, Any]] = {}
ANSWERED = threading.Condition()
COUNT = 0
SUBSCRIBED: set[str] = set()
RECEIVED: list[str] = []


def write(message: dict[str, Any]) -> None:
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def ask(method: str, params: dict[str, Any], key: Any) -> dict[str, Any]:
    write({"id": key, "method": method, "params": params})
    with ANSWERED:
        ANSWERED.wait_for(lambda: key in ANSWERS, 10)
        return ANSWERS.pop(key)


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}], "isError": False}


def tell_of_changes() -> None:
    call("change", {}, None)
    # Read by another side of the pipe than messages, it shows that these have been written.
    print(f"{NAME} has told of changes", file=sys.stderr, flush=True)


def call(name: str, arguments: dict[str, Any], request: Any) -> dict[str, Any]:
    if name == "ask":
        key: Any = 7 if arguments.get("number") else "q 1"
        answer = ask("sampling/createMessage", {"messages": [], "maxTokens": 5}, key)
        return text(f"{NAME} heard {json.dumps(answer.get('result', answer.get('error')), sort_keys=True)}")
    if name == "elicit":
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        answer = ask("elicitation/create", {"message": "who are you?", "requestedSchema": schema}, "e")
        return text(json.dumps(answer["result"]["content"]))
    if name == "roots":
        return text(json.dumps(ask("roots/list", {}, "r")["result"]["roots"]))
    if name == "exit":
        sys.stdout.close()
        os._exit(3)
    if name == "log":
        write({"method": "notifications/message", "params": {"level": "info", "data": f"{NAME} logs"}})
    if name == "change":
        for uri in SUBSCRIBED:
            write({"method": "notifications/resources/updated", "params": {"uri": uri}})
        write({"method": "notifications/tools/list_changed"})
    if name == "later":
        threading.Timer(0.4, tell_of_changes).start()
    if name == "tell":
        return text(json.dumps({"environment": dict(os.environ), "received": RECEIVED}))
    if name == "numbers":
        return text(json.dumps(arguments))
    return text(f"{NAME}: {name}")


def result(method: str, params: dict[str, Any], request: Any) -> dict[str, Any] | None:
    if method == "initialize":
        capabilities: dict[str, Any] = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
        if "noprompts" not in WORDS:
            capabilities |= {"prompts": {}, "completions": {}}
        return {"protocolVersion": "2025-06-18" if "june" in WORDS else "2025-03-26", "capabilities": capabilities, "instructions": f"I am {NAME}.",
                "serverInfo": {"name": NAME, "version": "1"}}  # fmt: skip
    if method in ("ping", "logging/setLevel"):
        return {}
    if method == "tools/list":
        names = ["ask", "roots", "exit", "log", "change", "numbers", "later", f"only-{NAME}"]
        page = int(params.get("cursor", "0"))
        found: dict[str, Any] = {"tools": [{"name": one, "inputSchema": {"type": "object"}} for one in names[page : page + 3]]}
        if page + 3 < len(names):
            found["nextCursor"] = str(page + 3)
        return found
    if method == "tools/call" and "task" in params:
        return {"task": {"taskId": f"t+{NAME}", "status": "working", "ttl": None}}
    if method in ("tasks/get", "tasks/cancel"):
        return {"taskId": params["taskId"], "status": "completed" if method == "tasks/get" else "cancelled"}
    if method == "tasks/result":
        return text(f"{NAME} did {params['taskId']}")
    if method == "tools/call":
        return call(params["name"], params.get("arguments") or {}, request)
    if method == "resources/list":
        return {"resources": [{"uri": f"note://{NAME}/1", "name": "1"}, {"uri": "ui://app/1", "name": "app"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "note://{id}", "name": "t"}]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": f"{NAME} reads {params['uri']}"}]}
    if method == "resources/subscribe":
        SUBSCRIBED.add(params["uri"])
        return {}
    if method == "prompts/list" and "noprompts" not in WORDS:
        return {"prompts": [{"name": "hello"}]}
    if method == "prompts/get" and "noprompts" not in WORDS:
        return {"messages": [{"role": "user", "content": {"type": "text", "text": f"{NAME} {params['name']}"}}]}
    if method == "completion/complete":
        return {"completion": {"values": [f"{NAME} {json.dumps(params['ref'], sort_keys=True)}"]}}
    return None


def serve(message: dict[str, Any]) -> None:
    found = result(message["method"], message.get("params") or {}, message["id"])
    if message["method"] == "initialize" and "badinit" in WORDS:
        write({"id": message["id"], "error": {"code": -32000, "message": "not today"}})
    elif found is None:
        write({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
    else:
        write({"id": message["id"], "result": found})


for line in sys.stdin:
    RECEIVED.append(line)
    got = json.loads(line)
    if "method" not in got:
        with ANSWERED:
            ANSWERS[got["id"]] = got
            ANSWERED.notify_all()
    elif "id" in got:
        threading.Thread(target=serve, args=(got,), daemon=True).start()
