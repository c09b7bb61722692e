"""Readers and writers of streams, joined for tests."""

from __future__ import annotations

import json
from typing import Any

from headgate_engine.llm.translate.blocks import MessagesWriter, ResponsesWriter
from headgate_engine.llm.translate.readers import EventReader
from headgate_engine.llm.translate.writers import CompletionsWriter, Writer
from headgate_engine.sse.decode import SseDecoder

WRITERS: dict[str, type[Writer]] = {
    "completions": CompletionsWriter,
    "messages": MessagesWriter,
    "responses": ResponsesWriter,
}


def joined(reader: type[EventReader], client: str = "messages", **extra: object) -> EventReader:
    """Return a reader that writes for this client."""
    return reader(WRITERS[client]("0f", "model", 7, {"made": "given"}, extra))


def run(reader: EventReader, *events: Any, end: bool = True) -> list[dict[str, Any]]:
    """Return what the client is told, as JSON; `[DONE]` is left out. An event is a value, or a name and a value."""
    out = b""
    for event in events:
        name, data = event if isinstance(event, tuple) else (None, event)
        out += reader.event(name, data if isinstance(data, bytes) else json.dumps(data).encode())
    if end:
        out += reader.end(None)
    return [json.loads(event.data) for event in SseDecoder().decode(out) if event.data != b"[DONE]"]


def blocks(told: list[dict[str, Any]]) -> list[Any]:
    """Return the blocks that a client of Messages puts together."""
    found: list[Any] = []
    for event in told:
        if event["type"] == "content_block_start":
            found.append({**event["content_block"], "input": ""})
        elif event["type"] == "content_block_delta":
            for name, value in event["delta"].items():
                key = {"text": "text", "thinking": "thinking", "signature": "signature", "partial_json": "input"}.get(name)
                if key:
                    found[event["index"]][key] += value
    return [
        (block["type"], block.get("name") or block.get("text") or block.get("thinking") or block.get("data"),
         block["input"] or block.get("signature", ""))
        for block in found
    ]  # fmt: skip
