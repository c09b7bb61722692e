"""Texts of the Responses API."""

from __future__ import annotations

from tests.oracles.transcripts.completions import SYSTEM, file_parts
from tests.oracles.transcripts.contract import Builder, Piece, Span, TextScope, Turn, elements

JOINER = b"\n"
# Item -> members that hold what a tool is given, and what it gave.
CALLS = {
    "function_call": ("arguments",),
    "mcp_call": ("arguments",),
    "mcp_approval_request": ("arguments",),
    "custom_tool_call": ("input",),
    "shell_call": ("action",),
    "local_shell_call": ("action",),
    "computer_call": ("action", "actions"),
    "web_search_call": ("action",),
    "apply_patch_call": ("operation",),
    "code_interpreter_call": ("code",),
    "file_search_call": ("queries",),
}
OUTPUTS = {
    "mcp_call": ("output",),
    "mcp_list_tools": ("tools",),
    "code_interpreter_call": ("outputs",),
    "file_search_call": ("results",),
}
UNSEEN = frozenset(("reasoning", "compaction", "item_reference"))


def request(builder: Builder) -> None:
    """Note instructions and input items."""
    top = builder.fields(0)
    for span in top.get("instructions", ()):
        if builder.is_text(span):
            turn = builder.turn("system", JOINER)
            builder.add(TextScope.SYSTEM_PROMPT, Piece(*span), turn, JOINER)
            continue
        for row in builder.rows({"input": [span]}, "input"):
            _item(builder, row)
    for span in top.get("input", ()):
        if builder.is_text(span):
            builder.add(TextScope.MESSAGES, Piece(*span), builder.turn("user", JOINER), JOINER)
            continue
        for row in builder.rows({"input": [span]}, "input"):
            _item(builder, row)
    builder.cut()
    for start, _ in top.get("prompt", ()):
        variables(builder, start)


def variables(builder: Builder, start: int) -> None:
    """Note what is put into a prompt that the provider keeps."""
    for inner, _ in builder.fields(start).get("variables", ()):
        turn = builder.turn("user", JOINER)
        # In the order in which they stand there, also if a name comes twice.
        for span in sorted(span for spans in builder.fields(inner).values() for span in spans):
            if builder.is_text(span):
                builder.alone(TextScope.MESSAGES, span, turn)
            else:
                builder.strings(TextScope.MESSAGES, builder.fields(span[0]), "text", turn=turn)


def _item(builder: Builder, row: Span) -> None:
    fields = builder.fields(row[0])
    kinds = builder.words(fields, "type")
    kind = kinds[-1] if kinds else "message"
    if "message" in kinds or not kinds:
        roles = builder.words(fields, "role")
        scope = TextScope.SYSTEM_PROMPT if roles and all(role in SYSTEM for role in roles) else TextScope.MESSAGES
        turn = builder.turn(roles[-1] if roles else "", JOINER)
        for span in fields.get("content", ()):
            _content(builder, span, scope, turn)
        if all(one == "message" for one in kinds):
            return
    builder.cut()
    if kind.endswith("_output"):
        for span in fields.get("output", ()):
            if builder.body[span[0]] == 91:
                _content(builder, span, TextScope.TOOL_OUTPUT, None)
                builder.cut()
            else:
                builder.values(TextScope.TOOL_OUTPUT, {"output": [span]}, "output")
    builder.values(TextScope.TOOL_INPUT, fields, *CALLS.get(kind, ()))
    builder.values(TextScope.TOOL_OUTPUT, fields, *OUTPUTS.get(kind, ()))


def _content(builder: Builder, span: Span, scope: TextScope, turn: Turn | None) -> None:
    if builder.is_text(span):
        builder.add(scope, Piece(*span), turn, JOINER)
        return
    for row, element in elements(builder.rows({"content": [span]}, "content")):
        fields = builder.fields(row[0])
        texts = builder.texts(fields, "text", "refusal")
        first = len(builder.noted)
        if not texts:
            builder.cut()
        for one in texts:
            builder.add(scope, Piece(*one, element=element, clears=marks(fields)), turn, JOINER)
        file_parts(builder, fields, scope, turn)
        builder.keep_item(first, texts)


def marks(fields: dict[str, list[Span]]) -> tuple[tuple[int, int, bytes], ...]:
    """Return what is wrong once a text has changed: annotations count its characters, probabilities repeat it."""
    return tuple((*span, b"[]") for name in ("annotations", "logprobs") for span in fields.get(name, ()))


def reply(builder: Builder) -> None:
    """Note the parts of the output's messages, one choice for each message."""
    output(builder, builder.fields(0))


def output(builder: Builder, holder: dict[str, list[Span]]) -> None:
    """Note the messages of an `output` list."""
    for start, _ in builder.rows(holder, "output"):
        message(builder, start)


def message(builder: Builder, start: int) -> None:
    """Note one output item, if it is a message."""
    fields = builder.fields(start)
    if "message" not in builder.words(fields, "type"):
        return
    turn = builder.turn("assistant", JOINER)
    for row in builder.rows(fields, "content"):
        part(builder, row[0], turn)


def part(builder: Builder, start: int, turn: Turn | None) -> None:
    """Note one part of a message, if it is text."""
    fields = builder.fields(start)
    texts = [one for one in fields.get("text", ()) if builder.is_text(one)]
    if not texts:
        builder.cut()
    for one in texts:
        builder.add(TextScope.MESSAGES, Piece(*one, clears=marks(fields)), turn, JOINER)
