"""Bodies that say MARK in each place of texts, a provider, and services of guards that know two words."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.end_to_end.llm_formats import CONVERSE, RESPONSE, frame
from tests.end_to_end.provider_stand_in import StandIn, chat, event, message, message_events, stream, whole
from websockets.sync.server import ServerConnection, serve

MARK = "MARK"
# What every guard refuses, and what every guard masks that can.
REFUSED, MASKED = "heron", "magpie@b.example"
STATUS = 422
# A text file in base64 that says MARK.
FILE = "b64(MARK)"
Place = tuple[str, str, str]        # shape, text, format
Json = dict[str, Any]

CALL = '{"to":"MARK"}'
DONE_CALL = '{"to":"x"}'
HI = {"role": "user", "content": "hi"}
SYSTEM, SAID, VARIABLES = ("plain", "system prompt"), ("plain", "messages"), ("plain", "variables of a stored prompt")
CALLS, RESULTS, DEFINED = ("tools", "earlier tool calls"), ("tools", "results of tools"), ("tools", "definitions of tools")
THOUGHT, DOCUMENT = ("reasoning", "earlier reasoning"), ("files", "documents as text")
CODED = ("files", "text files in base64")
DATA, OTHER = ("files", "images, audio and other files"), ("other", "embeddings, rerank, token counts")


def _chat_tools(arguments: str, result: str) -> Json:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return {"messages": [HI, {"role": "assistant", "content": None, "tool_calls": [call]},
                         {"role": "tool", "tool_call_id": "c", "content": result}]}  # fmt: skip


def _says(content: Any, role: str = "user") -> Json:
    return {"messages": [HI, {"role": role, "content": content}, HI] if role != "user" else [{"role": role, "content": content}]}


def _message_tools(given: str, result: str) -> Json:
    return {"messages": [HI, {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"to": given}}]},
                         {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": result}]}]}  # fmt: skip


def _response_tools(arguments: str, output: str) -> Json:
    return {"input": [HI, {"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments},
                      {"type": "function_call_output", "call_id": "c", "output": output}]}  # fmt: skip


def _parts(*parts: Json, role: str = "user") -> Json:
    hi = {"role": "user", "parts": [{"text": "hi"}]}
    return {"contents": [hi, {"role": role, "parts": list(parts)}, hi]}


def _blocks(*blocks: Json, role: str = "user") -> Json:
    hi = {"role": "user", "content": [{"text": "hi"}]}
    said = {"role": role, "content": list(blocks)}
    return {"messages": [said] if role == "user" else [hi, said, hi]}


def _block_tools(given: str, result: str) -> Json:
    return {"messages": [
        {"role": "user", "content": [{"text": "hi"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "f", "input": {"to": given}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": result}]}}]},
    ], "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]}}  # fmt: skip


FUNCTION = {"name": "f", "description": MARK, "parameters": {"type": "object"}}
REQUESTS: dict[str, dict[tuple[str, str], Json]] = {
    "completions": {
        SYSTEM: {"messages": [{"role": "system", "content": MARK}, HI]},
        SAID: _says(MARK),
        CALLS: _chat_tools(CALL, "ok"),
        RESULTS: _chat_tools(DONE_CALL, MARK),
        DEFINED: {"messages": [HI], "tools": [{"type": "function", "function": FUNCTION}]},
        THOUGHT: {"messages": [HI, {"role": "assistant", "content": "x", "reasoning_content": MARK}, HI]},
        CODED: _says([{"type": "file", "file": {"filename": "f.txt", "file_data": f"data:text/plain;base64,{FILE}"}}]),
        DATA: _says([{"type": "image_url", "image_url": {"url": "https://x.example/MARK"}}]),
    },
    "messages": {
        SYSTEM: {"system": MARK, "messages": [HI]},
        SAID: _says(MARK),
        CALLS: _message_tools(MARK, "ok"),
        RESULTS: _message_tools("x", MARK),
        DEFINED: {"messages": [HI], "tools": [{"name": "f", "description": MARK, "input_schema": {"type": "object"}}]},
        THOUGHT: _says([{"type": "thinking", "thinking": MARK, "signature": "s"}, {"type": "text", "text": "x"}], "assistant"),
        DOCUMENT: _says([{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": MARK}}]),
        CODED: _says([{"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": FILE}}]),
        DATA: _says([{"type": "image", "source": {"type": "url", "url": "https://x.example/MARK"}}]),
    },
    "responses": {
        SYSTEM: {"instructions": MARK, "input": "hi"},
        SAID: {"input": MARK},
        VARIABLES: {"input": "hi", "prompt": {"id": "p", "variables": {"a": MARK}}},
        CALLS: _response_tools(CALL, "ok"),
        RESULTS: _response_tools(DONE_CALL, MARK),
        DEFINED: {"input": "hi", "tools": [{"type": "function", **FUNCTION}]},
        THOUGHT: {"input": [HI, {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": MARK}]}, HI]},
        CODED: {"input": [{"role": "user", "content": [
            {"type": "input_file", "filename": "f.md", "file_data": f"data:text/markdown;base64,{FILE}"}]}]},
        DATA: {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x.example/MARK"}]}]},
    },
    "gemini": {
        SYSTEM: {"systemInstruction": {"parts": [{"text": MARK}]}, **_parts({"text": "hi"})},
        SAID: _parts({"text": MARK}),
        CALLS: _parts({"functionCall": {"name": "f", "args": {"to": MARK}}}, role="model"),
        RESULTS: _parts({"functionResponse": {"name": "f", "response": {"is": MARK}}}),
        DEFINED: {**_parts({"text": "hi"}), "tools": [{"functionDeclarations": [FUNCTION]}]},
        THOUGHT: _parts({"text": MARK, "thought": True}, role="model"),
        CODED: _parts({"text": "hi"}, {"inlineData": {"mimeType": "text/csv", "data": FILE}}),
        DATA: _parts({"fileData": {"mimeType": "image/png", "fileUri": "https://x.example/MARK"}}),
    },
    "converse": {
        SYSTEM: {"system": [{"text": MARK}], **_blocks({"text": "hi"})},
        SAID: _blocks({"text": MARK}),
        VARIABLES: {**_blocks({"text": "hi"}), "promptVariables": {"a": {"text": MARK}}},
        CALLS: _block_tools(MARK, "ok"),
        RESULTS: _block_tools("x", MARK),
        DEFINED: {**_blocks({"text": "hi"}), "toolConfig": {"tools": [
            {"toolSpec": {"name": "f", "description": MARK, "inputSchema": {"json": {"type": "object"}}}}]}},
        THOUGHT: _blocks({"reasoningContent": {"reasoningText": {"text": MARK, "signature": "s"}}}, {"text": "x"}, role="assistant"),
        DOCUMENT: _blocks({"document": {"format": "txt", "name": "d", "source": {"text": MARK}}}, {"text": "hi"}),
        CODED: _blocks({"document": {"format": "html", "name": "d", "source": {"bytes": FILE}}}, {"text": "hi"}),
        DATA: _blocks({"image": {"format": "png", "source": {"s3Location": {"uri": "s3://x/MARK"}}}}, {"text": "hi"}),
    },
    "embeddings": {OTHER: {"input": MARK}},
    "rerank": {OTHER: {"query": MARK, "documents": ["d"]}},
    "count_tokens": {OTHER: _says(MARK)},
    "gemini_count_tokens": {OTHER: _parts({"text": MARK})},
}  # fmt: skip
# Prefix of the model that speaks the format itself, path, path of streams.
PATHS: dict[str, tuple[str, str, str]] = {
    # One that is nobody's own: others lose the reasoning of earlier turns.
    "completions": ("c", "/v1/chat/completions", ""),
    "messages": ("a", "/v1/messages", ""),
    "responses": ("o", "/v1/responses", ""),
    "gemini": ("g", "/v1beta/models/{model}:generateContent", "/v1beta/models/{model}:streamGenerateContent?alt=sse"),
    "converse": ("b", "/model/{model}/converse", "/model/{model}/converse-stream"),
    "embeddings": ("o", "/v1/embeddings", ""),
    "rerank": ("o", "/v1/rerank", ""),
    "count_tokens": ("a", "/v1/messages/count_tokens", ""),
    "gemini_count_tokens": ("g", "/v1beta/models/{model}:countTokens", ""),
    "realtime": ("r", "/v1/realtime", ""),
}


def _item(**item: Any) -> Json:
    return {"type": "conversation.item.create", "item": item}


def _session(**session: Any) -> Json:
    return {"type": "session.update", "session": session}


EVENTS: dict[str, Json] = {
    "system prompt": _session(instructions=MARK),
    "messages": _item(type="message", role="user", content=[{"type": "input_text", "text": MARK}]),
    "variables of a stored prompt": {"type": "response.create", "response": {"prompt": {"id": "p", "variables": {"a": MARK}}}},
    "earlier tool calls": _item(type="function_call", call_id="c", name="f", arguments=CALL),
    "results of tools": _item(type="function_call_output", call_id="c", output=MARK),
    "definitions of tools": _session(tools=[{"type": "function", **FUNCTION}]),
    "images and audio": _item(type="message", role="user", content=[{"type": "input_image", "image_url": "data:MARK"}]),
}

ANSWER, MADE, DREAMT, DRAWN = "the answer", "tool calls", "reasoning", "images and audio"


def _choice(**said: Any) -> Json:
    found = chat()
    return {**found, "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": None, **said}}]}


def _output(*items: Json) -> Json:
    return {**RESPONSE, "output": list(items)}


def _candidate(*parts: Json) -> Json:
    return {"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": list(parts)}}],
            "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 1}}  # fmt: skip


def _converse(*blocks: Json) -> Json:
    return {**CONVERSE, "output": {"message": {"role": "assistant", "content": list(blocks)}}}


SPOKEN = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
# Whole answers by format.
ANSWERS: dict[str, dict[str, Json]] = {
    "completions": {
        ANSWER: _choice(content=MARK),
        MADE: _choice(tool_calls=[{"id": "c", "type": "function", "function": {"name": "f", "arguments": CALL}}]),
        DREAMT: _choice(content="x", reasoning_content=MARK),
        DRAWN: _choice(audio={"id": "a", "data": "AAAA", "transcript": MARK, "expires_at": 1}),
    },
    "messages": {
        ANSWER: message(MARK),
        MADE: {**message(), "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"to": MARK}}]},
        DREAMT: {**message(), "content": [{"type": "thinking", "thinking": MARK, "signature": "s"}, {"type": "text", "text": "x"}]},
        DRAWN: {**message(), "content": [{"type": "image", "source": {"type": "url", "url": "https://x.example/MARK"}}]},
    },
    "responses": {
        ANSWER: _output({**SPOKEN, "content": [{"type": "output_text", "text": MARK, "annotations": []}]}),
        MADE: _output({"type": "function_call", "id": "f", "call_id": "c", "name": "f", "arguments": CALL}),
        DREAMT: _output({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": MARK}]}),
        DRAWN: _output({"type": "image_generation_call", "id": "i", "status": "completed", "result": MARK}),
    },
    "gemini": {
        ANSWER: _candidate({"text": MARK}),
        MADE: _candidate({"functionCall": {"name": "f", "args": {"to": MARK}}}),
        DREAMT: _candidate({"text": MARK, "thought": True}, {"text": "x"}),
        DRAWN: _candidate({"inlineData": {"mimeType": "image/png", "data": MARK}}),
    },
    "converse": {
        ANSWER: _converse({"text": MARK}),
        MADE: _converse({"toolUse": {"toolUseId": "t", "name": "f", "input": {"to": MARK}}}),
        DREAMT: _converse({"reasoningContent": {"reasoningText": {"text": MARK, "signature": "s"}}}, {"text": "x"}),
        DRAWN: _converse({"image": {"format": "png", "source": {"s3Location": {"uri": "s3://x/MARK"}}}}),
    },
}  # fmt: skip


def _chunk(**delta: Any) -> bytes:
    return event({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "real",
                  "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})  # fmt: skip


def _block(kind: Json, delta: Json) -> tuple[bytes, ...]:
    first, *_, delta_end, end, stop = message_events()
    opened = event({"type": "content_block_start", "index": 0, "content_block": kind}, "content_block_start")
    told = event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
    return first, opened, told, delta_end, end, stop


def _spoken(kind: str, **more: Any) -> bytes:
    return event({"type": kind, "item_id": "m", "output_index": 0, "content_index": 0, **more}, kind)


OVER = event({"type": "response.completed", "response": {**RESPONSE, "output": []}}, "response.completed")
TAIL = (_chunk(), event("[DONE]"))
# Streams by format; those of Converse are made for each word, since frames have checksums.
STREAMS: dict[str, dict[str, Callable[[str], tuple[bytes, ...]]]] = {
    "completions": {
        ANSWER: lambda word: (_chunk(role="assistant", content=word), *TAIL),
        MADE: lambda word: (_chunk(role="assistant", tool_calls=[
            {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": word}}]), *TAIL),
        DREAMT: lambda word: (_chunk(role="assistant", reasoning_content=word), *TAIL),
    },
    "messages": {
        ANSWER: lambda word: tuple(message_events(word)),
        MADE: lambda word: _block({"type": "tool_use", "id": "t", "name": "f", "input": {}},
                                  {"type": "input_json_delta", "partial_json": f'"{word}"'}),
        DREAMT: lambda word: _block({"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": word}),
    },
    "responses": {
        ANSWER: lambda word: (_spoken("response.output_text.delta", delta=word), OVER),
        MADE: lambda word: (_spoken("response.function_call_arguments.delta", delta=word), OVER),
        DREAMT: lambda word: (_spoken("response.reasoning_summary_text.delta", delta=word), OVER),
    },
    "gemini": {
        ANSWER: lambda word: (event(_candidate({"text": word})),),
        MADE: lambda word: (event(_candidate({"functionCall": {"name": "f", "args": {"to": word}}})),),
        DREAMT: lambda word: (event(_candidate({"text": word, "thought": True})),),
    },
    "converse": {
        ANSWER: lambda word: _frames({"text": word}),
        MADE: lambda word: _frames({"toolUse": {"input": f'"{word}"'}}),
        DREAMT: lambda word: _frames({"reasoningContent": {"text": word}}),
    },
}  # fmt: skip


def _frames(delta: Json) -> tuple[bytes, ...]:
    return (
        frame("messageStart", {"role": "assistant"}),
        frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": delta}),
        frame("contentBlockStop", {"contentBlockIndex": 0}),
        frame("messageStop", {"stopReason": "end_turn"}),
        frame("metadata", {"usage": CONVERSE["usage"]}),
    )


_PART = {"item_id": "i", "content_index": 0}
# What a model says in a conversation, in front of `response.done`.
TOLD: dict[str, list[Json]] = {
    ANSWER: [{"type": "response.output_text.delta", **_PART, "delta": MARK}, {"type": "response.output_text.done", **_PART, "text": MARK}],
    MADE: [{"type": "response.function_call_arguments.delta", "item_id": "i", "delta": MARK}],
    "audio and its transcript": [{"type": "response.output_audio_transcript.delta", **_PART, "delta": MARK}],
}
AWS = "application/vnd.amazon.eventstream"
# What the provider answers where the test is about the request: end of the path to body.
PLAIN: dict[str, Json] = {
    "/chat/completions": chat(), "count_tokens": {"input_tokens": 1}, "/messages": message(), "/responses": RESPONSE,
    ":generateContent": _candidate({"text": "hello"}), ":countTokens": {"totalTokens": 1}, "/converse": CONVERSE,
    "/embeddings": {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}], "model": "m",
                    "usage": {"prompt_tokens": 1, "total_tokens": 1}},
    "/rerank": {"id": "r", "results": [{"index": 0, "relevance_score": 1}]},
}  # fmt: skip


def worded(template: Any, word: str) -> Any:
    """The template with the word in the place of MARK, and files in base64."""
    return json.loads(re.sub(r"b64\((.*?)\)", _encoded, json.dumps(template).replace(MARK, word)))


def _encoded(found: re.Match[str]) -> str:
    return base64.b64encode(f"It says {found[1]}.".encode()).decode()


def legible(body: bytes) -> str:
    """A body with what its files in base64 say."""
    text, four = body.decode(), "[A-Za-z0-9+/]{4}"
    files = re.findall(rf'[",]((?:{four}){{3,}}(?:[\w+/]{{2}}==|[\w+/]{{3}}=)?)"', text)
    return text + "".join(base64.b64decode(one).decode("utf-8", "replace") for one in files)


class Provider(StandIn):
    """Answers by path; `told`: what it answers instead."""

    def __init__(self) -> None:
        self.told: Callable[..., None] | None = None
        super().__init__(self._by_path)

    def _by_path(self, stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        if self.told is not None:
            self.told(stand_in, handler)
            return
        path = handler.path.partition("?")[0]
        whole(next(body for end, body in PLAIN.items() if path.endswith(end)))(stand_in, handler)

    def says(self, form: str, text: str, word: str, streams: bool) -> None:
        """Say a word in a place of an answer."""
        if streams:
            self.told = stream(*STREAMS[form][text](word), kind=AWS if form == "converse" else "text/event-stream")
        else:
            self.told = whole(worded(ANSWERS[form][text], word))


class Services:
    """All services that guards ask: each refuses REFUSED, and masks MASKED if it can."""

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["content-length"])).decode()
                raw = json.dumps(_verdict(self.path, text)).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def _verdict(path: str, text: str) -> Json:
    refused, body = REFUSED in text, json.loads(text)
    if path in ("/request", "/response"):
        if refused:
            return {"action": {"body": "guarded", "status_code": STATUS}}
        return {"action": {"body": json.loads(text.replace(MASKED, "*"))["body"]} if MASKED in text else {}}
    if path == "/v1/moderations":
        return {"results": [{"flagged": REFUSED in one} for one in body["input"]]}
    if path.startswith("/guardrail/"):
        outputs = [{"text": one["text"]["text"].replace(MASKED, "*")} for one in body["content"]]
        action = "BLOCKED" if refused else "ANONYMIZED" if MASKED in text else "NONE"
        acted = "NONE" if action == "NONE" else "GUARDRAIL_INTERVENED"
        return {"action": acted, "outputs": outputs, "assessments": [{"x": [{"action": action}]}]}
    if ":sanitize" in path:
        return {"sanitizationResult": {"filterMatchState": "MATCH_FOUND" if refused else "NO_MATCH_FOUND"}}
    return {"categoriesAnalysis": [{"category": "Hate", "severity": 6 if refused else 0}]}


class Peer:
    """A realtime provider: an event with `"say": [events]` is answered with these, anything else with `heard`."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.server = serve(self._talk, "127.0.0.1", 0)
        self.port = self.server.socket.getsockname()[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _talk(self, connection: ServerConnection) -> None:
        for raw in connection:
            told = json.loads(raw)
            self.seen.append(str(raw))
            for one in told.get("say", [{"type": "heard"}]):
                connection.send(json.dumps(one))

    def close(self) -> None:
        self.server.shutdown()
