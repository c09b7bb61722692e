"""Texts of what clients say in realtime conversations."""

from __future__ import annotations

from tests.oracles.transcripts import responses
from tests.oracles.transcripts.contract import Builder, Piece, Span, TextScope, Turn

from headgate_engine.guard.spans import items

SYSTEM = ("system", "developer")
ARRAY = 91


def request(builder: Builder) -> None:
    """Note the texts of items, of the settings of a response, and of those of a session."""
    top = builder.fields(0)
    for span in top.get("item", ()):
        _item(builder, span)
    for name in ("response", "session"):
        for start, _ in top.get(name, ()):
            _settings(builder, start)


def _item(builder: Builder, span: Span) -> None:
    if builder.is_text(span):
        builder.alone(TextScope.MESSAGES, span, builder.turn("user", b" "))
        return
    item = builder.fields(span[0])
    roles = builder.words(item, "role")
    system = bool(roles) and all(role in SYSTEM for role in roles)
    scope = TextScope.SYSTEM_PROMPT if system else TextScope.MESSAGES
    turn = builder.turn(roles[-1] if roles else "user", b" ")
    for content in item.get("content", ()):
        _content(builder, content, scope, turn)
    builder.cut()
    builder.values(TextScope.TOOL_INPUT, item, "arguments")
    for output in item.get("output", ()):
        if builder.body[output[0]] == ARRAY:
            _content(builder, output, TextScope.TOOL_OUTPUT, None)
            builder.cut()
        elif builder.body[slice(*output)] != b"null":
            builder.alone(TextScope.TOOL_OUTPUT, output)


def _content(builder: Builder, span: Span, scope: TextScope, turn: Turn | None) -> None:
    for row in items(builder.body, span[0]) if builder.body[span[0]] == ARRAY else [span]:
        if builder.is_text(row):
            builder.add(scope, Piece(*row), turn)
            continue
        for text in builder.texts(builder.fields(row[0]), "text", "transcript"):
            builder.add(scope, Piece(*text), turn)


def _settings(builder: Builder, start: int) -> None:
    fields = builder.fields(start)
    for span in fields.get("instructions", ()):
        _content(builder, span, TextScope.SYSTEM_PROMPT, builder.turn("system", b" "))
        builder.cut()
    for span in fields.get("input", ()):
        for row in items(builder.body, span[0]) if builder.body[span[0]] == ARRAY else [span]:
            _item(builder, row)
    for prompt, _ in fields.get("prompt", ()):
        responses.variables(builder, prompt)
    _transcription(builder, fields, "input_audio_transcription")
    for audio, _ in fields.get("audio", ()):
        for given, _ in builder.fields(audio).get("input", ()):
            _transcription(builder, builder.fields(given), "transcription")


def _transcription(builder: Builder, fields: dict[str, list[Span]], name: str) -> None:
    for start, _ in fields.get(name, ()):
        turn = builder.turn("system", b" ")
        builder.strings(TextScope.SYSTEM_PROMPT, builder.fields(start), "prompt", turn=turn)
