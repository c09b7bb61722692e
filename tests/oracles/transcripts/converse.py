"""Texts of Bedrock's Converse, whose blocks are named by their members."""

from __future__ import annotations

from tests.oracles.transcripts.contract import Builder, Piece, Span, TextScope, Turn, elements

from headgate_engine.guard.spans import members

Fields = dict[str, list[Span]]


def request(builder: Builder) -> None:
    """Note the system prompt, the messages, and the variables of a stored prompt."""
    top = builder.fields(0)
    for span in top.get("system", ()):
        _blocks(builder, span, TextScope.SYSTEM_PROMPT, builder.turn("system", b"\n"), b"\n")
    for start, _ in builder.rows(top, "messages"):
        fields = builder.fields(start)
        roles = builder.words(fields, "role")
        turn = builder.turn(roles[-1] if roles else "", b" ")
        for span in fields.get("content", ()):
            _blocks(builder, span, TextScope.MESSAGES, turn, b" ")
    builder.cut()
    for start, _ in top.get("promptVariables", ()):
        turn = builder.turn("user", b" ")
        for _, value, _ in members(builder.body, start):
            builder.strings(TextScope.MESSAGES, builder.fields(value), "text", turn=turn)


def _texts(builder: Builder, fields: Fields) -> list[Span]:
    return [one for one in fields.get("text", ()) if builder.is_text(one)]


def _rows(builder: Builder, span: Span) -> list[tuple[Span, Span]]:
    return elements(builder.rows({"x": [span]}, "x"))


def _blocks(builder: Builder, span: Span, scope: TextScope, turn: Turn, joiner: bytes) -> None:
    for row, element in _rows(builder, span):
        fields = builder.fields(row[0])
        texts = _texts(builder, fields)
        first = len(builder.noted)
        for one in texts:
            builder.add(scope, Piece(*one, element=element), turn, joiner)
        if not texts:
            builder.cut()
        _block(builder, fields, scope, turn)
        builder.keep_item(first, texts)


def _block(builder: Builder, fields: Fields, scope: TextScope, turn: Turn) -> None:
    for start, _ in fields.get("toolUse", ()):
        builder.values(TextScope.TOOL_INPUT, builder.fields(start), "input")
    for start, _ in fields.get("toolResult", ()):
        for span in builder.fields(start).get("content", ()):
            _result(builder, span)
    for name in ("document", "searchResult"):
        _nested(builder, fields, name, scope, turn)
    _inner(builder, fields, ("citationsContent", "content"), scope, turn)
    _inner(builder, fields, ("guardContent", "text"), scope, turn)


def _result(builder: Builder, span: Span) -> None:
    for row, element in _rows(builder, span):
        fields = builder.fields(row[0])
        texts = _texts(builder, fields)
        first = len(builder.noted)
        for one in texts:
            builder.add(TextScope.TOOL_OUTPUT, Piece(*one, element=element))
        if not texts:
            builder.cut()
        builder.values(TextScope.TOOL_OUTPUT, fields, "json")
        for name in ("document", "searchResult"):
            _nested(builder, fields, name, TextScope.TOOL_OUTPUT)
        builder.keep_item(first, texts)
    builder.cut()


def _nested(builder: Builder, fields: Fields, name: str, scope: TextScope, turn: Turn | None = None) -> None:
    """Documents and search results."""
    for start, _ in fields.get(name, ()):
        found = builder.fields(start)
        builder.strings(scope, found, "title", "context", turn=turn)
        _listed(builder, found, "content", scope, turn)
        _inner(builder, found, ("source", "content"), scope, turn)
        _inner(builder, found, ("source", "text"), scope, turn)
        for inner, _ in found.get("source", ()):
            holder = builder.fields(inner)
            told = {"bytes": holder.get("bytes", []), "format": found.get("format", [])}
            builder.files(scope, told, "bytes", "format", turn, unnamed=True)


def _listed(builder: Builder, fields: Fields, name: str, scope: TextScope, turn: Turn | None) -> None:
    for row in builder.rows(fields, name):
        builder.strings(scope, builder.fields(row[0]), "text", turn=turn)


def _inner(builder: Builder, fields: Fields, names: tuple[str, str], scope: TextScope, turn: Turn | None) -> None:
    name, inner = names
    for start, _ in fields.get(name, ()):
        holder = builder.fields(start)
        builder.strings(scope, holder, inner, turn=turn)
        _listed(builder, holder, inner, scope, turn)
        for value, _ in holder.get(inner, ()):
            builder.strings(scope, builder.fields(value), "text", turn=turn)


def reply(builder: Builder) -> None:
    """Note what the message says; it is one choice."""
    turn = builder.turn("assistant", b" ")
    for outer, _ in builder.fields(0).get("output", ()):
        for middle, _ in builder.fields(outer).get("message", ()):
            for row in builder.rows(builder.fields(middle), "content"):
                _said(builder, builder.fields(row[0]), turn)


def _said(builder: Builder, fields: Fields, turn: Turn) -> None:
    texts = _texts(builder, fields)
    for one in texts:
        builder.add(TextScope.MESSAGES, Piece(*one), turn)
    if not texts:
        builder.cut()
    for start, _ in fields.get("citationsContent", ()):
        for row in builder.rows(builder.fields(start), "content"):
            for one in _texts(builder, builder.fields(row[0])):
                builder.add(TextScope.MESSAGES, Piece(*one), turn)
        builder.cut()
