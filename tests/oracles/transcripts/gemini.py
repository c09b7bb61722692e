"""Texts of generateContent. Google reads names in camelCase and in snake_case."""

from __future__ import annotations

from tests.oracles.transcripts.contract import Builder, Piece, Span, TextScope, Turn, elements

JOINER = b"\n"


def both(fields: dict[str, list[Span]], camel: str, snake: str) -> list[Span]:
    """Return the values of a member in either spelling."""
    return [*fields.get(camel, ()), *fields.get(snake, ())]


def request(builder: Builder) -> None:
    """Note the system instruction and the contents."""
    top = builder.fields(0)
    for start, _ in both(top, "systemInstruction", "system_instruction"):
        _parts(builder, builder.fields(start), TextScope.SYSTEM_PROMPT, builder.turn("system", JOINER))
    contents = [start for start, _ in top.get("contents", ())]
    # One content may stand without a list around it.
    single = [start for start in contents if builder.body[start] == 123]
    for start in [*single, *(row[0] for row in builder.rows(top, "contents"))]:
        fields = builder.fields(start)
        roles = builder.words(fields, "role")
        _parts(builder, fields, TextScope.MESSAGES, builder.turn(roles[-1] if roles else "user", JOINER))
    builder.cut()


def _parts(builder: Builder, content: dict[str, list[Span]], scope: TextScope, turn: Turn) -> None:
    single = [span for span in content.get("parts", ()) if builder.body[span[0]] == 123]
    rows = [pair for span in content.get("parts", ()) for pair in elements(builder.rows({"parts": [span]}, "parts"))]
    for row, element in [*((span, (0, 0)) for span in single), *rows]:
        fields = builder.fields(row[0])
        if is_thought(builder, fields):
            builder.cut()
            continue
        texts = [one for one in fields.get("text", ()) if builder.is_text(one)]
        first = len(builder.noted)
        if not texts:
            builder.cut()
        for one in texts:
            builder.add(scope, Piece(*one, element=element), turn, JOINER)
        for start, _ in both(fields, "inlineData", "inline_data"):
            for name in ("mimeType", "mime_type"):
                builder.files(scope, builder.fields(start), "data", name, turn)
        _tools(builder, fields)
        builder.keep_item(first, texts)


def _tools(builder: Builder, fields: dict[str, list[Span]]) -> None:
    for names, what, scope in (
        (("functionCall", "function_call"), "args", TextScope.TOOL_INPUT),
        (("executableCode", "executable_code"), "code", TextScope.TOOL_INPUT),
        (("functionResponse", "function_response"), "response", TextScope.TOOL_OUTPUT),
        (("codeExecutionResult", "code_execution_result"), "output", TextScope.TOOL_OUTPUT),
    ):
        for start, _ in both(fields, *names):
            builder.values(scope, builder.fields(start), what)


def is_thought(builder: Builder, fields: dict[str, list[Span]]) -> bool:
    """Whether a part is what the model thinks and nothing that it says."""
    spans = fields.get("thought", ())
    return bool(spans) and all(builder.body[start:stop] == b"true" for start, stop in spans)


def reply(builder: Builder) -> None:
    """Note what the candidates say."""
    for start, _ in builder.rows(builder.fields(0), "candidates"):
        turn = builder.turn("assistant", JOINER)
        for inner, _ in builder.fields(start).get("content", ()):
            for row in builder.rows(builder.fields(inner), "parts"):
                fields = builder.fields(row[0])
                texts = [one for one in fields.get("text", ()) if builder.is_text(one)]
                if not texts or is_thought(builder, fields):
                    builder.cut()
                    continue
                for one in texts:
                    builder.add(TextScope.MESSAGES, Piece(*one), turn, JOINER)
