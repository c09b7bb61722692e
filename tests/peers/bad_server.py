"""An MCP server on standard input and output that misbehaves, as its first argument says, once it has been initialized."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

WAY = sys.argv[1]
SLEEPER = [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)", "bad_server_child"]


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def say(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def result(method: str) -> dict[str, Any]:
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "bad", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": "call", "inputSchema": {"type": "object"}}]}
    return {"content": [{"type": "text", "text": "bad called"}]}


def garbage(key: Any, good: dict[str, Any]) -> None:
    for text in ("\n", "no JSON\n", "{\n", "[]\n", '{"jsonrpc": "1.0", "id": 1}\n', "\x00\xff\n", "[" * 5000 + "\n", '{"id": {}, "result": 5}\n'):
        write(text)
    say({"id": key, "result": good})


def others(key: Any, good: dict[str, Any]) -> None:
    for number in (*range(key + 1, key + 9), "x", None, 1.5, -1, 10**30):
        say({"id": number, "result": {"tools": [{"name": "stolen", "inputSchema": {}}]}})
    say({"id": key, "result": good})
    say({"id": key, "result": {"tools": [{"name": "again", "inputSchema": {}}]}})
    say({"id": key, "error": {"code": -1, "message": "again"}})


def letters(key: Any, good: dict[str, Any]) -> None:
    for letter in json.dumps({"jsonrpc": "2.0", "id": key, "result": good}) + "\n":
        write(letter)


def flood(key: Any, good: dict[str, Any]) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 10_000}}
    for _ in range(3000):
        write(json.dumps(note) + "\n")
    say({"id": key, "result": good})


def forks(key: Any, good: dict[str, Any]) -> None:
    subprocess.Popen(SLEEPER)
    say({"id": key, "result": good})


def leaves_a_child(key: Any, good: dict[str, Any]) -> None:
    # Its child holds the output open.
    subprocess.Popen(SLEEPER)
    os._exit(1)


def long_line(key: Any, good: dict[str, Any]) -> None:
    for _ in range(40):
        write("x" * 1024 * 1024)
    say({"id": key, "result": good})


def deaf(key: Any, good: dict[str, Any]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)


def closes(key: Any, good: dict[str, Any]) -> None:
    # It goes on, and will never say a word.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.close(1)
    time.sleep(600)


def ends(key: Any, good: dict[str, Any]) -> None:
    os._exit(7)


WAYS = {
    "garbage": garbage, "others": others, "letters": letters, "flood": flood, "forks": forks, "leaves_a_child": leaves_a_child,
    "long_line": long_line, "deaf": deaf, "closes": closes, "ends": ends,
}  # fmt: skip

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked or "method" not in asked:
        continue
    found = result(asked["method"])
    if asked["method"] == "tools/call":
        WAYS[WAY](asked["id"], found)
    else:
        say({"id": asked["id"], "result": found})
