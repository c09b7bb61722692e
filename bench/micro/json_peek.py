"""headgate_engine.peek.json against json.loads."""

from __future__ import annotations

import json
from collections.abc import Iterator

from bench.micro.timing import Row, compare, same, show
from headgate_engine.peek.json import ChatPeek, RpcPeek, UsagePeek


def chat(size: int) -> bytes:
    """A chat request of about `size` bytes, in messages of 200 characters."""
    messages = [{"role": "user", "content": "some words " * 18} for _ in range(max(1, size // 240))]
    return json.dumps({"model": "gpt-4o", "messages": messages, "stream": True}).encode()


USAGE = json.dumps(
    {
        "id": "chatcmpl-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "word " * 180}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 180, "total_tokens": 380},
    }
).encode()
CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ping","arguments":{"text":"hello"}}}'


def full_chat(text: bytes) -> tuple[str, bool]:
    found = json.loads(text)
    return found["model"], found.get("stream", False)


def full_usage(text: bytes) -> tuple[int, int, int]:
    found = json.loads(text)["usage"]
    return found["prompt_tokens"], found["completion_tokens"], found["total_tokens"]


def full_rpc(text: bytes) -> tuple[str, bool]:
    found = json.loads(text)
    return found["method"], "id" in found


def peek_rpc(peek: RpcPeek, text: bytes) -> tuple[str | None, bool]:
    peek.peek(text)
    return peek.string("method"), peek.has_id


def rows() -> Iterator[Row]:
    model, usage, rpc = ChatPeek(), UsagePeek(), RpcPeek()
    for size in (1024, 65536):
        body = chat(size)
        same(model.peek(body)[:2], full_chat(body))
        yield compare(f"peek: model and stream of {size // 1024} KiB", lambda b=body: model.peek(b),  # type: ignore[misc]
                      lambda b=body: full_chat(b), against="json.loads")  # type: ignore[misc]  # fmt: skip
    found = usage.peek(USAGE)
    same(None if found is None else found[:3], full_usage(USAGE))
    yield compare("peek: usage of a 1 KiB answer", lambda: usage.peek(USAGE), lambda: full_usage(USAGE),
                  against="json.loads")  # fmt: skip
    same(peek_rpc(rpc, CALL), full_rpc(CALL))
    yield compare("peek: JSON-RPC method and id", lambda: peek_rpc(rpc, CALL), lambda: full_rpc(CALL),
                  against="json.loads")  # fmt: skip


if __name__ == "__main__":
    show(rows())
