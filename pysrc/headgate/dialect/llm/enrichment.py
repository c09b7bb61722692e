"""Adds messages of the gateway to prompts. They are inserted by offsets, so that the client's bytes do not change."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

from headgate.document.lazy_dataclass import dataclass
from headgate_engine.guard.spans import items, members

SYSTEM: Final = "system"
QUOTE, LIST, OBJECT = 34, 91, 123


@dataclass(frozen=True, slots=True)
class EnrichmentMessage:
    """One message. `role` is a role of the client's format, `content` the text."""

    role: str
    content: str


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class _Body:
    """A body, and the pieces to insert by offset."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.lead = len(body) - len(body.lstrip(b" \t\r\n"))
        self.added: list[tuple[int, int, bytes]] = []

    def find(self, *names: str, at: int | None = None) -> list[tuple[int, int]]:
        rows = members(self.body, self.lead if at is None else at)
        return [(start, stop) for name, start, stop in rows if name in names]

    def around(self, span: tuple[int, int], first: Sequence[bytes], last: Sequence[bytes]) -> None:
        """Insert items at both ends of the array at `span`."""
        start, stop = span
        empty = not items(self.body, start)
        if first:
            self.added.append((start + 1, start + 1, b",".join(first) + (b"" if empty and not last else b",")))
        if last:
            self.added.append((stop - 1, stop - 1, (b"" if empty else b",") + b",".join(last)))

    def add_member(self, name: str, value: bytes) -> None:
        """Insert a member in front of all others of the body."""
        comma = b"," if members(self.body, self.lead) else b""
        place = self.lead + 1
        self.added.append((place, place, _json(name) + b":" + value + comma))

    def replace(self, span: tuple[int, int], value: bytes) -> None:
        self.added.append((*span, value))

    def done(self) -> bytes:
        parts, at = [], 0
        for start, stop, new in sorted(self.added, key=lambda one: one[:2]):
            parts += [self.body[at:start], new]
            at = stop
        return b"".join([*parts, self.body[at:]])


Messages = Sequence[EnrichmentMessage]


def _completions(body: _Body, prepend: Messages, append: Messages) -> None:
    def told(messages: Messages) -> list[bytes]:
        return [_json({"role": one.role, "content": one.content}) for one in messages]

    for span in body.find("messages"):
        if body.body[span[0]] == LIST:
            body.around(span, told(prepend), told(append))


def _split(messages: Messages) -> tuple[Messages, Messages]:
    """Return the system messages, and all other messages."""
    return [one for one in messages if one.role == SYSTEM], [one for one in messages if one.role != SYSTEM]


def _messages(body: _Body, prepend: Messages, append: Messages) -> None:
    (first, before), (last, after) = _split(prepend), _split(append)
    _completions(body, before, after)
    if not first and not last:
        return

    def told(messages: Messages) -> list[bytes]:
        return [_json({"type": "text", "text": one.content}) for one in messages]

    spans = body.find("system")
    for span in spans:
        raw = body.body[slice(*span)]
        if raw[0] == LIST:
            body.around(span, told(first), told(last))
        else:
            own = [b'{"type":"text","text":' + raw + b"}"] if raw[0] == QUOTE and raw != b'""' else []
            body.replace(span, b"[" + b",".join([*told(first), *own, *told(last)]) + b"]")
    if not spans:
        body.add_member("system", b"[" + b",".join(told([*first, *last])) + b"]")


def _responses(body: _Body, prepend: Messages, append: Messages) -> None:
    def told(messages: Messages) -> list[bytes]:
        return [_json({"type": "message", "role": one.role, "content": one.content}) for one in messages]

    spans = body.find("input")
    for span in spans:
        raw = body.body[slice(*span)]
        if raw[0] == LIST:
            body.around(span, told(prepend), told(append))
            continue
        own = [b'{"type":"message","role":"user","content":' + raw + b"}"] if raw[0] == QUOTE else []
        body.replace(span, b"[" + b",".join([*told(prepend), *own, *told(append)]) + b"]")
    if not spans:
        # A request with a stored prompt (`prompt`) may have no `input`.
        body.add_member("input", b"[" + b",".join(told([*prepend, *append])) + b"]")


def _gemini(body: _Body, prepend: Messages, append: Messages) -> None:
    (first, before), (last, after) = _split(prepend), _split(append)

    def told(messages: Messages) -> list[bytes]:
        roles = {"assistant": "model"}
        return [_json({"role": roles.get(one.role, one.role), "parts": [{"text": one.content}]}) for one in messages]

    for span in body.find("contents"):
        if body.body[span[0]] == LIST:
            body.around(span, told(before), told(after))
        elif body.body[span[0]] == OBJECT and (before or after):
            own = body.body[slice(*span)]
            body.replace(span, b"[" + b",".join([*told(before), own, *told(after)]) + b"]")
    if not first and not last:
        return
    parts = [[_json({"text": one.content}) for one in messages] for messages in (first, last)]
    spans = body.find("systemInstruction", "system_instruction")
    for span in spans:
        _instruction(body, span, *parts)
    if not spans:
        body.add_member("systemInstruction", b'{"parts":[' + b",".join(parts[0] + parts[1]) + b"]}")


def _instruction(body: _Body, span: tuple[int, int], first: list[bytes], last: list[bytes]) -> None:
    """Insert parts into a system instruction, which may have a list of parts, one part, or none."""
    start = span[0]
    all_parts = b'"parts":[' + b",".join(first + last) + b"]"
    if body.body[start] != OBJECT:
        body.replace(span, b"{" + all_parts + b"}")
        return
    found = body.find("parts", at=start)
    for inner in found:
        raw = body.body[slice(*inner)]
        if raw[0] == LIST:
            body.around(inner, first, last)
        else:
            own = [raw] if raw[0] == OBJECT else []
            body.replace(inner, b"[" + b",".join([*first, *own, *last]) + b"]")
    if not found:
        body.added.append((start + 1, start + 1, all_parts + (b"," if members(body.body, start) else b"")))


def _converse(body: _Body, prepend: Messages, append: Messages) -> None:
    (first, before), (last, after) = _split(prepend), _split(append)

    def told(messages: Messages) -> list[bytes]:
        return [_json({"role": one.role, "content": [{"text": one.content}]}) for one in messages]

    def texts(messages: Messages) -> list[bytes]:
        return [_json({"text": one.content}) for one in messages]

    for span in body.find("messages"):
        if body.body[span[0]] == LIST:
            body.around(span, told(before), told(after))
    if not first and not last:
        return
    spans = body.find("system")
    for span in spans:
        if body.body[span[0]] == LIST:
            body.around(span, texts(first), texts(last))
        else:
            body.replace(span, b"[" + b",".join(texts([*first, *last])) + b"]")
    if not spans:
        body.add_member("system", b"[" + b",".join(texts([*first, *last])) + b"]")


# Formats whose requests have messages. Requests of all other formats are not changed.
FORMATS: Final[dict[str, Callable[[_Body, Messages, Messages], None]]] = {
    "completions": _completions,
    "messages": _messages,
    "count_tokens": _messages,
    "responses": _responses,
    "gemini": _gemini,
    "converse": _converse,
}


def enrich(body: bytes, form: str, prepend: Messages, append: Messages) -> bytes:
    """Return a body with messages added before its first and after its last message, each list in its order.

    In formats without a system role, system messages are added to the format's field for system texts. `body` must be
    valid JSON.
    """
    write = FORMATS.get(form)
    if write is None:
        return body
    found = _Body(body)
    write(found, prepend, append)
    return found.done() if found.added else body
