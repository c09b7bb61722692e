"""Masks of whole bodies against edits made one by one."""

from __future__ import annotations

import json
from typing import Any

import effort
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.engine.guard.test_readers import BODIES

from headgate.dialect.llm.transcript.contract import TextScope
from headgate.dialect.llm.transcript.edit import Changes
from headgate.dialect.llm.transcript.table import reply_texts, request_texts
from headgate_engine.guard.readers import FORMATS, read_texts
from headgate_engine.guard.scan import ScanBudget, Scanner
from headgate_engine.guard.search import first_rule, masked
from headgate_engine.guard.transcript import SCOPES
from headgate_engine.peek.json import PeekError

RULES = (
    [("builtin", "email"), ("builtin", "ssn"), ("builtin", "phoneNumber")],
    [("builtin", "phoneNumber"), ("builtin", "creditCard"), ("builtin", "caSin"), ("builtin", "ssn")],
    [("pattern", "(?i)t[a-z]"), ("builtin", "email")],
    [("pattern", " ")],
    [("pattern", "(?s).+")],
    [("builtin", "email"), ("pattern", "[A-Z_]+>?|e")],
)
SCANNERS = [Scanner(rules) for rules in RULES]
PARTS = st.lists(
    st.sampled_from(
        ["jo@", "ex.io", "a@b.co", "219-09-9999", "415-555", "2671", "4111 1111 1111", "1111", "", " ", "\u00e9", "\n",
         '"', "\\", "text", "\U0001f600"]
    ),
    max_size=4,
).map("".join)  # fmt: skip


@st.composite
def chats(draw: st.DrawFn) -> bytes:
    """A conversation with numbers and addresses in its parts."""
    content: Any = draw(
        PARTS
        | st.lists(
            PARTS.map(lambda text: {"type": "text", "text": text, "annotations": [1], "logprobs": None})
            | PARTS.map(lambda text: {"type": "tool_result", "content": text})
            | PARTS.map(lambda text: {"type": "tool_use", "input": {"to": text}}),
            max_size=5,
        )
    )
    role = draw(st.sampled_from(("user", "system")))
    message = {"role": role, "content": content, "annotations": [2], "tool_calls": [{"function": {"arguments": draw(PARTS)}}]}
    top = {"messages": [message, message], "choices": [{"message": message, "logprobs": {"a": 1}}], "input": [message],
           "output": [{**message, "type": "message"}], "content": content}  # fmt: skip
    return json.dumps(top, ensure_ascii=draw(st.booleans())).encode()


def one_by_one(scanner: Scanner, body: bytes, form: str, scopes: frozenset[TextScope], reply: bool) -> bytes | None:
    """The body masked run by run in Python."""
    found = (reply_texts if reply else request_texts)(body, form)
    changes = Changes(body)
    for run in found.of(scopes):
        edits = scanner.edits(run.text(body))
        if edits:
            changes.text(run.pieces, run.joiner, [edit[:3] for edit in edits])
    return changes.done() if changes else None


@settings(max_examples=effort.examples(1200), deadline=None)
@given(
    chats() | BODIES, st.sampled_from(sorted(FORMATS)), st.sampled_from(SCANNERS), st.sets(st.sampled_from(SCOPES)), st.booleans()
)
@example(b'{"messages":[{"role":"user","content":"a@b.co\\u00e9 c@d.ef"}]}', "completions", SCANNERS[0], {"messages"}, False)
def test_masks_are_those_of_edits_made_one_by_one(
    body: bytes, form: str, scanner: Scanner, scopes: set[str], reply: bool
) -> None:
    texts = read_texts(body, form, reply=reply)
    wanted = frozenset(map(TextScope, scopes))
    try:
        expected = one_by_one(scanner, body, form, wanted, reply)
    except PeekError:
        with pytest.raises(PeekError):
            masked(scanner, texts, scopes, ScanBudget())
        return
    assert masked(scanner, texts, scopes, ScanBudget()) == expected
    rules = [scanner.first(texts.text(index)) for index in range(len(texts)) if texts.scope(index) in scopes]
    assert first_rule(scanner, texts, scopes, ScanBudget()) == next((rule for rule in rules if rule >= 0), -1)


def test_a_scope_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="tuple"):
        masked(SCANNERS[0], read_texts(b"{}", "messages"), {"weather"}, ScanBudget())


def test_ten_thousand_parts_with_one_match_each_are_masked() -> None:
    part = {"type": "text", "text": "a@b.co"}
    body = json.dumps({"messages": [{"role": "user", "content": [part] * 10_000}]}).encode()
    found = masked(SCANNERS[0], read_texts(body, "completions"), {"messages"}, ScanBudget())
    assert found == body.replace(b"a@b.co", b"<EMAIL_ADDRESS>")
