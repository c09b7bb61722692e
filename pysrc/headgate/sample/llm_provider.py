"""A small OpenAI-compatible provider that needs no model and no key: it answers with what it was asked.

`/v1/chat/completions` (whole and streamed), `/v1/embeddings`, `/v1/models`. A word is a token. A model named `slow`
waits 100 ms before each piece of a stream; `missing` does not exist.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from headgate.sample.web import SampleRequest, SampleResponse, end_with_parent, run

CREATED = 1_700_000_000


def error(status: int, message: str, code: str | None = None) -> SampleResponse:
    """Return an error object in OpenAI's format."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    return SampleResponse(status=status, body=json.dumps(body).encode())


async def handle(request: SampleRequest, api_key: str | None = None) -> SampleResponse:
    """Answer one request."""
    if api_key is not None and request.header("authorization") != f"Bearer {api_key}":
        return error(401, "Incorrect API key provided", "invalid_api_key")
    if request.path == "/v1/models":
        models = [{"id": "sample", "object": "model", "created": CREATED, "owned_by": "headgate"}]
        return SampleResponse(body=json.dumps({"object": "list", "data": models}).encode())
    if request.path not in ("/v1/chat/completions", "/v1/embeddings"):
        return error(404, f"Unknown request URL: {request.method} {request.path}")
    try:
        body = json.loads(request.body)
        model = body["model"]
    except (ValueError, KeyError, TypeError):
        return error(400, "The request body must be a JSON object with a model")
    if model == "missing":
        return error(404, f"The model `{model}` does not exist", "model_not_found")
    if request.path == "/v1/embeddings":
        return embeddings(body)
    if not isinstance(body.get("messages"), list):
        return error(400, "Missing required parameter: 'messages'")
    if body.get("stream"):
        return SampleResponse(content_type="text/event-stream", stream=stream(body))
    return SampleResponse(body=json.dumps(completion(body)).encode())


def text_of(message: dict[str, Any]) -> str:
    """Return the text of a message; its content may be a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def words(body: dict[str, Any]) -> list[str]:
    """Return the words of the answer, which echoes the last message."""
    messages = body["messages"]
    last = text_of(messages[-1]) if messages and isinstance(messages[-1], dict) else ""
    return ["You", "said:", *last.split()]


def usage(body: dict[str, Any], answer: list[str]) -> dict[str, int]:
    """Return the usage object; every word counts as one token."""
    prompt = sum(len(text_of(message).split()) for message in body["messages"] if isinstance(message, dict))
    return {"prompt_tokens": prompt, "completion_tokens": len(answer), "total_tokens": prompt + len(answer)}


def identity(body: dict[str, Any]) -> str:
    """Return an id that is equal for equal requests."""
    return "chatcmpl-" + hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:24]


def completion(body: dict[str, Any]) -> dict[str, Any]:
    """Return a complete (not streamed) answer."""
    answer = words(body)
    message = {"role": "assistant", "content": " ".join(answer)}
    return {
        "id": identity(body),
        "object": "chat.completion",
        "created": CREATED,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage(body, answer),
    }


async def stream(body: dict[str, Any]) -> AsyncIterator[bytes]:
    """Yield a streamed answer as events: role, words, finish reason, usage if requested, end."""
    base = {"id": identity(body), "object": "chat.completion.chunk", "created": CREATED, "model": body["model"]}
    answer = words(body)
    deltas: list[tuple[dict[str, str], str | None]] = [({"role": "assistant", "content": ""}, None)]
    deltas += [({"content": word if i == 0 else " " + word}, None) for i, word in enumerate(answer)]
    deltas.append(({}, "stop"))
    options = body.get("stream_options")
    with_usage = isinstance(options, dict) and bool(options.get("include_usage"))
    for delta, reason in deltas:
        chunk: dict[str, Any] = {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        if with_usage:
            chunk["usage"] = None
        yield b"data: " + json.dumps(chunk).encode() + b"\n\n"
        await asyncio.sleep(0.1 if body["model"] == "slow" else 0)
    if with_usage:
        yield b"data: " + json.dumps({**base, "choices": [], "usage": usage(body, answer)}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def embeddings(body: dict[str, Any]) -> SampleResponse:
    """Return an embedding of eight numbers for each text, computed from its hash."""
    given = body.get("input")
    texts = given if isinstance(given, list) else [given]
    data = []
    for index, text in enumerate(texts):
        digest = hashlib.sha256(str(text).encode()).digest()
        vector = [round(byte / 255, 6) for byte in digest[:8]]
        data.append({"object": "embedding", "index": index, "embedding": vector})
    count = sum(len(str(text).split()) for text in texts)
    counted = {"prompt_tokens": count, "total_tokens": count}
    return SampleResponse(
        body=json.dumps({"object": "list", "data": data, "model": body["model"], "usage": counted}).encode()
    )


def main() -> None:
    """Run `python -m headgate.sample.llm_provider`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--api-key", help="refuse requests without this key")
    parser.add_argument("--end-with-parent", action="store_true")
    options = parser.parse_args()
    if options.end_with_parent:
        end_with_parent()
    handler = partial(handle, api_key=options.api_key)
    asyncio.run(run([("llm", handler, options.host, options.port)]))


if __name__ == "__main__":
    main()
