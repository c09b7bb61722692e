"""Texts of Anthropic messages (and of their token counts, which have the same request)."""

from __future__ import annotations

from tests.oracles.transcripts.contract import Builder, Piece, Span, TextScope, Turn, elements

UNSEEN = frozenset(("thinking", "redacted_thinking", "web_search_tool_result"))
CALLS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))
RESULT = "tool_result"


def request(builder: Builder) -> None:
    """Note the system prompt and the messages."""
    top = builder.fields(0)
    for span in top.get("system", ()):
        turn = builder.turn("system", b"\n")
        blocks(builder, span, TextScope.SYSTEM_PROMPT, turn, b"\n")
    for start, _ in builder.rows(top, "messages"):
        fields = builder.fields(start)
        roles = builder.words(fields, "role")
        scope = TextScope.SYSTEM_PROMPT if roles and all(role == "system" for role in roles) else TextScope.MESSAGES
        turn = builder.turn(roles[-1] if roles else "", b" ")
        for span in fields.get("content", ()):
            blocks(builder, span, scope, turn, b" ")


def blocks(builder: Builder, span: Span, scope: TextScope, turn: Turn | None, joiner: bytes) -> None:
    """Note a content: a string, or blocks."""
    if builder.is_text(span):
        builder.add(scope, Piece(*span), turn, joiner)
        return
    for row, element in elements(builder.rows({"content": [span]}, "content")):
        fields = builder.fields(row[0])
        kinds = builder.words(fields, "type")
        kind = kinds[-1] if kinds else ""
        if kind == "mid_conv_system":
            builder.cut()
            for inner in fields.get("content", ()):
                blocks(builder, inner, TextScope.SYSTEM_PROMPT, turn, joiner)
            builder.strings(TextScope.SYSTEM_PROMPT, fields, "text", turn=turn)
            continue
        texts = [one for one in fields.get("text", ()) if builder.is_text(one)]
        if texts and ("text" in kinds or not kinds):
            first = len(builder.noted)
            for one in texts:
                builder.add(scope, Piece(*one, element=element if len(kinds) < 2 else (0, 0)), turn, joiner)
            builder.keep_item(first, texts)
            if len(kinds) < 2:
                continue
        builder.cut()
        if len(kinds) == 1 and kind in UNSEEN:
            continue
        if any(one in CALLS for one in kinds):
            builder.values(TextScope.TOOL_INPUT, fields, "input")
            if len(kinds) < 2:
                continue
        if any(one.endswith(RESULT) for one in kinds):
            _result(builder, fields)
            if len(kinds) < 2:
                continue
            fields.pop("content", None)
        _document(builder, fields, scope, turn)


def _result(builder: Builder, fields: dict[str, list[Span]]) -> None:
    for span in fields.get("content", ()):
        if builder.is_text(span) or builder.body[span[0]] == 91:
            blocks(builder, span, TextScope.TOOL_OUTPUT, None, b" ")
            builder.cut()
        elif builder.body[span[0]] == 123:
            builder.alone(TextScope.TOOL_OUTPUT, span)


def _document(builder: Builder, fields: dict[str, list[Span]], scope: TextScope, turn: Turn | None) -> None:
    """Documents, search results, compactions: everything that they say."""
    builder.strings(scope, fields, "title", "context", turn=turn)
    for span in fields.get("content", ()):
        blocks(builder, span, scope, turn, b" ")
        builder.cut()
    builder.strings(scope, fields, "source", turn=turn)
    for span in fields.get("source", ()):
        if builder.is_text(span):
            continue
        source = builder.fields(span[0])
        if "base64" in builder.words(source, "type"):
            builder.files(scope, source, "data", "media_type", turn)
        else:
            builder.strings(scope, source, "data", turn=turn)
        builder.files(scope, source, "url", turn=turn)
        for inner in source.get("content", ()):
            blocks(builder, inner, scope, turn, b" ")
            builder.cut()


def reply(builder: Builder) -> None:
    """Note the text blocks; they are one choice."""
    turn = builder.turn("assistant", b" ")
    for row in builder.rows(builder.fields(0), "content"):
        fields = builder.fields(row[0])
        texts = [one for one in fields.get("text", ()) if builder.is_text(one)]
        if not texts or "text" not in builder.words(fields, "type"):
            builder.cut()
            continue
        for one in texts:
            builder.add(TextScope.MESSAGES, Piece(*one), turn)
