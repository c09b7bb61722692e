"""Bodies of a trace as people read them: decoded, and the words of a model's stream joined."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from typing import Any, Final

# A body that is cut may end within a character of UTF-8.
MOST_CUT: Final = 3
# Where events of the vendors' streams have their words; `*` is every item of a list.
WORDS: Final = (
    ("choices", "*", "delta", "content"),  # OpenAI chat completions
    ("delta", "text"),  # Anthropic
    ("candidates", "*", "content", "parts", "*", "text"),  # Gemini
    ("contentBlockDelta", "delta", "text"),  # Bedrock
)
TYPED_WORDS: Final = ("response.output_text.delta", "response.refusal.delta")  # OpenAI responses
REASONING: Final = (("choices", "*", "delta", "reasoning_content"), ("delta", "thinking"))


def readable(body: Any) -> Any:
    """Return a base64 body as a JSON value if it parses, else a stream of events with its words joined, else as text,
    else unchanged.
    """
    if not isinstance(body, str):
        return body
    try:
        text = _decoded(base64.b64decode(body, validate=True))
    except (binascii.Error, UnicodeDecodeError):
        return body
    try:
        return json.loads(text)
    except ValueError:
        return joined(text) or text


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        # Cut in the middle of a character; anything else is no text.
        if error.start and len(raw) - error.start <= MOST_CUT and error.reason == "unexpected end of data":
            return raw[: error.start].decode()
        raise


def joined(text: str) -> dict[str, Any] | None:
    """Return the words of a stream of server-sent events, its tool calls and the events; None if it is none."""
    events = list(_events(text))
    if not events:
        return None
    found: dict[str, Any] = {}
    words, thoughts = ("".join(_words(one, WORDS) for one in events), "".join(_words(one, REASONING) for one in events))
    if thoughts:
        found["reasoning"] = thoughts
    if words:
        found["text"] = words
    calls = _calls(events)
    if calls:
        found["toolCalls"] = calls
    return found | {"events": events}


def _events(text: str) -> Iterator[Any]:
    data: list[str] = []
    lines = text.splitlines()
    if not any(line.startswith(("data:", "event:")) for line in lines):
        return
    for line in (*lines, ""):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            whole, data = "\n".join(data), []
            try:
                yield json.loads(whole)
            except ValueError:
                yield whole


def _words(event: Any, places: tuple[tuple[str, ...], ...]) -> str:
    if isinstance(event, dict) and places is WORDS and event.get("type") in TYPED_WORDS:
        return str(event.get("delta", ""))
    return "".join(one for place in places for one in _at(event, place) if isinstance(one, str))


def _at(value: Any, place: tuple[str, ...]) -> Iterator[Any]:
    if not place:
        yield value
    elif place[0] == "*":
        for one in value if isinstance(value, list) else ():
            yield from _at(one, place[1:])
    elif isinstance(value, dict) and place[0] in value:
        yield from _at(value[place[0]], place[1:])


def _calls(events: list[Any]) -> list[dict[str, Any]]:
    """Return the tool calls of a stream in the order of their beginning, with their arguments joined."""
    calls: dict[Any, dict[str, Any]] = {}
    for event in events:
        for one in _at(event, ("choices", "*", "delta", "tool_calls", "*")):
            if isinstance(one, dict):
                function = one.get("function") or {}
                _add(calls, one.get("index", 0), function.get("name"), function.get("arguments"))
        if isinstance(event, dict):
            block = event.get("content_block")
            if isinstance(block, dict) and block.get("type") == "tool_use":
                _add(calls, event.get("index"), block.get("name"), "")
            delta = event.get("delta")
            if isinstance(delta, dict) and delta.get("type") == "input_json_delta":
                _add(calls, event.get("index"), None, delta.get("partial_json"))
    return list(calls.values())


def _add(calls: dict[Any, dict[str, Any]], index: Any, name: Any, arguments: Any) -> None:
    call = calls.setdefault(str(index), {"name": "", "arguments": ""})
    call["name"] += name if isinstance(name, str) else ""
    call["arguments"] += arguments if isinstance(arguments, str) else ""
