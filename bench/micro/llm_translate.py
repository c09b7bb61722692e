"""headgate.dialect.llm: whole requests with their replies, histories of 200 messages, and single streamed chunks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from bench.micro.timing import Row, compare, show
from headgate.dialect.llm import pairs
from headgate.dialect.llm.contract import Json
from headgate_engine.llm.eventstream import encode_frame
from headgate_engine.llm.translate.readers import load_json
from headgate_engine.llm.translate.writers import dump_json

PROMPT = "Tell me a story about a fox and a hedgehog. " * 20
REQUESTS = {
    "messages": {"model": "m", "max_tokens": 256, "messages": [{"role": "user", "content": PROMPT}]},
    "completions": {"model": "m", "max_tokens": 256, "messages": [{"role": "user", "content": PROMPT}]},
    "responses": {"model": "m", "max_output_tokens": 256, "input": PROMPT},
}
REPLIES = {
    "completions": {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": PROMPT}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 200, "total_tokens": 400},
    },
    "messages": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": PROMPT}], "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 200, "output_tokens": 200},
    },
}  # fmt: skip
CHUNKS = 50
TURN = "Tell me a story about a fox and a hedgehog. " * 11
PARAMETERS = {"type": "object", "properties": {"q": {"type": "string"}}}


def history(client: str, tools: bool) -> Json:
    """Return a request with 200 messages, 100 KiB. tools: a half of them are calls and their results."""
    if client == "messages":
        call = {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {"q": "fox"}}
        asked: Json = {"role": "assistant", "content": [{"type": "text", "text": TURN}, call]}
        answered: Json = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": TURN}]}
        told: Json = {"system": "Be brief.", "tools": [{"name": "find", "input_schema": PARAMETERS}]}
    else:
        function = {"name": "find", "arguments": '{"q":"fox"}'}
        asked = {"role": "assistant", "content": TURN, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
        answered = {"role": "tool", "tool_call_id": "call_1", "content": TURN}
        told = {"tools": [{"type": "function", "function": {"name": "find", "parameters": PARAMETERS}}]}
    plain = [{"role": "user", "content": TURN}, {"role": "assistant", "content": TURN}]
    turns = [*plain, plain[0], asked, answered, plain[1]] * 33 + plain if tools else plain * 100
    return {"model": "m", "max_tokens": 256, "messages": turns, **(told if tools else {})}


def translated(client: str, upstream: str, tools: bool) -> Callable[[], bytes]:
    """Return what brings a history from bytes to the provider's bytes."""
    pair, body = pairs.PAIRS[client, upstream], dump_json(history(client, tools))
    options = pairs.Options(model="claude-sonnet-4-5" if upstream in ("messages", "converse") else "gpt-4o")
    return lambda: dump_json(pair.request(load_json(body), options).body)  # type: ignore[arg-type]


def through_json(client: str, tools: bool) -> Callable[[], bytes]:
    """Return what decodes and encodes it."""
    body = dump_json(history(client, tools))
    return lambda: json.dumps(json.loads(body)).encode()


def exchange(client: str, upstream: str) -> Callable[[], bytes]:
    """Return what brings a request and its reply from bytes to bytes."""
    pair = pairs.PAIRS[client, upstream]
    request, reply = dump_json(REQUESTS[client]), dump_json(REPLIES[upstream])
    options = pairs.Options()

    def run() -> bytes:
        asked = pair.request(load_json(request), options)  # type: ignore[arg-type]
        dump_json(asked.body)
        return dump_json(pair.reply(load_json(reply), asked))  # type: ignore[arg-type]

    return run


def floor(client: str, upstream: str) -> Callable[[], bytes]:
    """Return the same with json and nothing translated."""
    request, reply = dump_json(REQUESTS[client]), dump_json(REPLIES[upstream])

    def run() -> bytes:
        json.dumps(json.loads(request)).encode()
        return json.dumps(json.loads(reply)).encode()

    return run


def stream(client: str, upstream: str, chunks: list[bytes], start: list[bytes]) -> Callable[[], int]:
    """Return what translates the chunks, one by one."""
    pair = pairs.PAIRS[client, upstream]
    asked = pair.request({**REQUESTS[client], "stream": True}, pairs.Options())

    def run() -> int:
        converter = pair.stream(asked)
        for piece in start:
            converter.feed(piece)
        return sum(len(converter.feed(chunk)) for chunk in chunks)

    return run


def naive(chunks: list[bytes]) -> Callable[[], int]:
    """Return what only decodes and encodes the JSON of the chunks."""
    found = [chunk[chunk.index(b"{") : chunk.rindex(b"}") + 1] for chunk in chunks]
    return lambda: sum(len(json.dumps(json.loads(chunk))) for chunk in found)


COMPLETIONS = [
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
    b'{"content":"token %d "},"finish_reason":null}]}\n\n' % number for number in range(CHUNKS)
]  # fmt: skip
MESSAGES = [
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":'
    b'"token %d "}}\n\n' % number for number in range(CHUNKS)
]  # fmt: skip
CONVERSE = [
    encode_frame({":event-type": "contentBlockDelta", ":content-type": "application/json", ":message-type": "event"},
                 b'{"contentBlockIndex":0,"delta":{"text":"token %d "},"p":"abcdefgh"}' % number)
    for number in range(CHUNKS)
]  # fmt: skip
GEMINI = [
    b'data: {"candidates":[{"content":{"parts":[{"text":"token %d "}],"role":"model"},"index":0}],"usageMetadata":'
    b'{"promptTokenCount":5,"totalTokenCount":5},"modelVersion":"m","responseId":"r"}\r\n\r\n' % number
    for number in range(CHUNKS)
]  # fmt: skip


def rows() -> Iterator[Row]:
    for client, upstream in (("messages", "completions"), ("completions", "messages"), ("responses", "completions")):
        yield compare(f"llm: {client} to {upstream}, 1 KiB request and reply", exchange(client, upstream),
                      floor(client, upstream), against="json alone")  # fmt: skip
    for client, upstream in (
        ("messages", "completions"), ("completions", "messages"), ("messages", "gemini"), ("messages", "converse"),
        ("completions", "gemini"), ("completions", "converse"), ("messages", "responses"), ("completions", "responses"),
    ):  # fmt: skip
        for tools in (False, True):
            yield compare(f"llm: {client} to {upstream}, 200 messages{' with tools' if tools else ''}",
                          translated(client, upstream, tools), through_json(client, tools), against="json alone")  # fmt: skip
    for client, upstream, chunks in (
        ("messages", "completions", COMPLETIONS),
        ("completions", "messages", MESSAGES),
        ("responses", "completions", COMPLETIONS),
        ("messages", "converse", CONVERSE),
        ("completions", "gemini", GEMINI),
    ):
        yield compare(f"llm: a chunk of {upstream} to {client}", stream(client, upstream, chunks, []), naive(chunks),
                      against="json alone", operations=CHUNKS)  # fmt: skip


if __name__ == "__main__":
    show(rows())
