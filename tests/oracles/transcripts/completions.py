"""Texts of chat completions."""

from __future__ import annotations

from tests.oracles.transcripts.contract import Builder, Piece, Span, TextScope, Turn, elements

SYSTEM = ("system", "developer")
TOOL = ("tool", "function")


def scope_of(roles: list[str]) -> TextScope:
    """Return the scope of a message; of several roles the one that is looked at more closely counts."""
    if any(role not in TOOL for role in roles) or not roles:
        return TextScope.SYSTEM_PROMPT if roles and all(role in SYSTEM for role in roles) else TextScope.MESSAGES
    return TextScope.TOOL_OUTPUT


def request(builder: Builder) -> None:
    """Note the messages with their tool calls."""
    for start, _ in builder.rows(builder.fields(0), "messages"):
        fields = builder.fields(start)
        roles = builder.words(fields, "role")
        scope = scope_of(roles)
        turn = builder.turn(roles[-1] if roles else "", b" ")
        for span in fields.get("content", ()):
            _content(builder, span, scope, turn)
        builder.cut()
        for span in fields.get("refusal", ()):
            # A client can write here what it likes, and models read it.
            if builder.is_text(span):
                builder.add(scope, Piece(*span), turn)
        builder.cut()
        for call, _ in builder.rows(fields, "tool_calls"):
            called = builder.fields(call)
            for name, what in (("function", "arguments"), ("custom", "input")):
                for inner, _ in called.get(name, ()):
                    builder.values(TextScope.TOOL_INPUT, builder.fields(inner), what)
        for inner, _ in fields.get("function_call", ()):
            builder.values(TextScope.TOOL_INPUT, builder.fields(inner), "arguments")
        builder.cut()
        for span in fields.get("images", ()):
            _content(builder, span, scope, turn)
        builder.cut()


def _content(
    builder: Builder, span: Span, scope: TextScope, turn: Turn, clears: tuple[tuple[int, int, bytes], ...] = ()
) -> None:
    if builder.is_text(span):
        builder.add(scope, Piece(*span, clears=clears), turn)
        return
    for row, element in elements(builder.rows({"content": [span]}, "content")):
        if builder.is_text(row):
            builder.add(scope, Piece(*row, element=element, clears=clears), turn)
            continue
        fields = builder.fields(row[0])
        texts = builder.texts(fields, "text", "refusal")
        first = len(builder.noted)
        if not texts:
            builder.cut()
        for one in texts:
            builder.add(scope, Piece(*one, element=element, clears=clears), turn)
        file_parts(builder, fields, scope, turn)
        builder.keep_item(first, texts)


def file_parts(builder: Builder, fields: dict[str, list[Span]], scope: TextScope, turn: Turn | None) -> None:
    """Note the text files of a part, those of responses as well."""
    for name, inner in (("file_data", ""), ("image_url", "url"), ("file", "file_data")):
        builder.files(scope, fields, name, turn=turn)
        for start, _ in fields.get(name, ()) if inner else ():
            builder.files(scope, builder.fields(start), inner, turn=turn)


def reply(builder: Builder) -> None:
    """Note what the choices say. Token probabilities repeat it and annotations count its characters."""
    for start, _ in builder.rows(builder.fields(0), "choices"):
        choice = builder.fields(start)
        turn = builder.turn("assistant", b" ")
        clears = [(*span, b"null") for span in choice.get("logprobs", ())]
        for inner, _ in choice.get("message", ()):
            message = builder.fields(inner)
            clears += [(*span, b"[]") for span in message.get("annotations", ())]
            for span in message.get("content", ()):
                _content(builder, span, TextScope.MESSAGES, turn, tuple(clears))
