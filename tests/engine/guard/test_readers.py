"""The texts of bodies, as the engine reads them, against readers in Python."""

from __future__ import annotations

import json
import random
from typing import Any

import effort
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.oracles.transcripts.contract import Run, Turn
from tests.oracles.transcripts.table import reply_texts, request_texts

from headgate_engine.guard.readers import FORMATS, read_texts
from headgate_engine.peek.json import PeekError

NAMES = [
    "messages", "role", "content", "refusal", "tool_calls", "function", "arguments", "custom", "input", "function_call",
    "type", "text", "choices", "logprobs", "message", "annotations", "systemInstruction", "system_instruction", "contents",
    "parts", "thought", "functionCall", "args", "executableCode", "executable_code", "code", "functionResponse",
    "function_response", "response", "codeExecutionResult", "code_execution_result", "output", "candidates", "system",
    "title", "context", "source", "data", "instructions", "prompt", "variables", "action", "actions", "operation",
    "queries", "tools", "outputs", "results", "item", "query", "documents", "session",
    "toolUse", "toolResult", "json", "document", "searchResult", "citationsContent", "guardContent", "promptVariables",
    "transcript", "audio", "transcription", "input_audio_transcription", "other", "",
    "file", "file_data", "image_url", "url", "images", "inlineData", "inline_data", "mimeType", "mime_type", "media_type", "format", "bytes", "te\u0078t\n",
]  # fmt: skip
WORDS = [
    "system", "developer", "user", "assistant", "tool", "function", "text", "message", "thinking", "redacted_thinking",
    "image", "tool_use", "server_tool_use", "mcp_tool_use", "tool_result", "web_search_tool_result",
    "code_execution_tool_result", "mid_conv_system", "document", "base64", "input_text", "output_text", "function_call",
    "function_call_output", "x" * 70 + "_output", "mcp_call", "mcp_list_tools", "custom_tool_call", "computer_call",
    "code_interpreter_call", "file_search_call", "apply_patch_call", "web_search_call", "conversation.item.create", "a",
    "caf\u00e9", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), "tab\tquote\" back\\slash", "", "text/plain", "Application/JSON", "application/pdf", "csv", "data:text/plain;base64,Y2Fmw6k=",
    "data:text/x;" + "p" * 70 + ";base64,/w==", "DATA:text/csv;BASE64,YQ", "data:image/png;base64,YQ==", "data:text/plain,a",
    "data:text/plain;x=" + "\u00e9\\u002c" * 150 + ";base64,YQ==", "data:image/png;x=" + "p" * 70 + ";base64,YQ==",
    " text/plain", "data:" + " " * 70 + "text/plain;base64,YQ==", "\n da\rta:\ttext/plain; bas\fe64 ,YQ==",
]  # fmt: skip
# Each name with what its format expects there, so that deep places are reached.
SHAPES: dict[str, tuple[str, ...]] = {
    "messages": ("role", "content", "refusal", "tool_calls", "function_call", "images"),
    "choices": ("message", "logprobs"),
    "message": ("content", "annotations"),
    "toolUse": ("input",),
    "toolResult": ("content",),
    "document": ("source", "context", "title", "content", "format"),
    "searchResult": ("source", "title", "content"),
    "citationsContent": ("content",),
    "guardContent": ("text",),
    "promptVariables": ("a", "text"),
    "content": ("toolUse", "toolResult", "document", "searchResult", "citationsContent", "guardContent", "json", "type", "text", "refusal", "content", "source", "title", "input", "annotations", "logprobs", "context", "file", "file_data", "image_url"),
    "file": ("file_data",),
    "image_url": ("url",),
    "images": ("image_url", "type", "text"),
    "inlineData": ("data", "mimeType", "mime_type"),
    "inline_data": ("data", "mimeType", "mime_type"),
    "tool_calls": ("function", "custom"),
    "function": ("arguments",),
    "custom": ("input",),
    "function_call": ("arguments", "args"),
    "system": ("type", "text"),
    "source": ("type", "data", "content", "text", "media_type", "bytes", "url"),
    "input": ("type", "role", "content", "arguments", "input", "action", "actions", "output", "text", "code", "queries",
              "transcription"),
    "instructions": ("type", "role", "content"),
    "output": ("message", "type", "content", "text", "annotations"),
    "prompt": ("variables",),
    "variables": ("a", "text"),
    "contents": ("role", "parts"),
    "candidates": ("content",),
    "systemInstruction": ("parts",),
    "system_instruction": ("parts",),
    "parts": ("text", "thought", "inlineData", "inline_data", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"),
    "functionCall": ("args",),
    "functionResponse": ("response",),
    "executableCode": ("code",),
    "codeExecutionResult": ("output",),
    "item": ("type", "role", "content", "arguments", "output"),
    "response": ("instructions", "input", "prompt"),
    "session": ("instructions", "prompt", "audio", "input_audio_transcription"),
    "audio": ("input",),
    "input_audio_transcription": ("prompt",),
    "transcription": ("prompt",),
    "documents": ("text",),
    "query": ("text",),
}


class Members(list[tuple[str, Any]]):
    """An object as pairs: names may stand twice."""


def value(draw: random.Random, name: str, depth: int) -> Any:
    """A value for a member of that name: what is expected there more often than anything else."""
    kind = draw.choice("sssaaaoooxtn")
    if kind == "s" or depth == 0:
        return draw.choice(WORDS)
    if kind == "a":
        return [draw.choice(WORDS) if draw.random() < 0.5 else an_object(draw, name, depth - 1) for _ in range(draw.randint(0, 3))]
    if kind == "o":
        return an_object(draw, name, depth - 1)
    return {"x": 12, "t": draw.random() < 0.5, "n": None}[kind]


def an_object(draw: random.Random, name: str, depth: int) -> Members:
    """An object in a place of that name."""
    expected = SHAPES.get(name, ())
    found = Members()
    for _ in range(draw.randint(0, 4)):
        one = draw.choice(expected if expected and draw.random() < 0.5 else NAMES)
        found.append((one, value(draw, one, depth)))
    return found


TOPS = ["messages", "choices", "system", "content", "input", "instructions", "prompt", "contents", "candidates",
        "systemInstruction", "system_instruction", "output", "item", "type", "query", "documents",
        "response", "session", "promptVariables"]  # fmt: skip


def body(seed: int) -> bytes:
    """A body in no format and in all of them."""
    draw = random.Random(seed)
    top = Members()
    for _ in range(draw.randint(0, 5)):
        name = draw.choice(TOPS)
        top.append((name, value(draw, name, 5)))
    return written(top, draw.random() < 0.5, draw.choice(("", " ", "\n\t "))).encode()


# From seeds: choices that hypothesis makes itself cost ten times as much.
BODIES = st.integers(0, 2**64 - 1).map(body)


def written(value: Any, ascii_only: bool, gap: str) -> str:
    """JSON with blanks between all of its parts."""
    if isinstance(value, Members):
        pairs = (f"{json.dumps(name)}{gap}:{gap}{written(one, ascii_only, gap)}" for name, one in value)
        return gap + "{" + gap + f"{gap},{gap}".join(pairs) + gap + "}" + gap
    if isinstance(value, list):
        return "[" + gap + f"{gap},{gap}".join(written(one, ascii_only, gap) for one in value) + gap + "]"
    text = json.dumps(value, ensure_ascii=ascii_only)
    return text.replace(",", "\\u002c") if ascii_only else text


def told(body: bytes, form: str, reply: bool) -> tuple[list[Any], list[Any], list[bytes]]:
    """What the engine reads, in the oracle's words."""
    found = read_texts(body, form, reply=reply)
    runs = [found.run(index) for index in range(len(found))]
    return runs, found.conversation(), [found.text(index) for index in range(len(found))]


def expected(body: bytes, form: str, reply: bool) -> tuple[list[Any], list[Any], list[bytes]]:
    """What the readers in Python read."""
    found = (reply_texts if reply else request_texts)(body, form)

    def pieces(holder: Run | Turn) -> list[Any]:
        return [(one.start, one.stop, one.raw, one.element, one.clears, one.coded) for one in holder.pieces]

    runs = [(run.scope.value, run.joiner, pieces(run)) for run in found.runs]
    turns = [(turn.role, turn.joiner, pieces(turn)) for turn in found.turns]
    return runs, turns, [run.text(body) for run in found.runs]


@settings(max_examples=effort.examples(2000), deadline=None)
@example(b'{"prompt":{"variables":{"a":"x","b":"y","a":"z"}}}', "responses", False)
@given(BODIES, st.sampled_from(sorted(FORMATS)), st.booleans())
def test_the_engine_reads_what_the_readers_in_python_read(body: bytes, form: str, reply: bool) -> None:
    assert told(body, form, reply) == expected(body, form, reply)


def test_deep_blocks_are_read() -> None:
    body = b'{"messages":[{"role":"user","content":' + b'[{"type":"tool_result","content":' * 150 + b'"end"'
    body += b"}]" * 150 + b"}]}"
    assert told(body, "messages", False) == expected(body, "messages", False)
    assert told(body, "messages", False)[2] == [b"end"]


def test_what_cannot_be_read_is_refused() -> None:
    for body in (b"", b" ", b"{", b'{"a":"\xff"}', b"[" * 600 + b"]" * 600):
        with pytest.raises(PeekError):
            read_texts(body, "completions")
    with pytest.raises(ValueError, match="not a JSON object"):
        read_texts(b"[1]", "completions")
    with pytest.raises(KeyError):
        read_texts(b"{}", "smoke signals")
    with pytest.raises(IndexError):
        read_texts(b"{}", "completions").run(0)
