from __future__ import annotations

import json
import random

import effort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.dialect.llm.transcript.contract import TextScope
from headgate.dialect.llm.transcript.edit import Changes, difference
from headgate.dialect.llm.transcript.table import reply_texts, request_texts
from headgate_engine.guard.scan import Scanner
from headgate_engine.peek.json import PeekError

EMAIL = Scanner([("builtin", "email")])
FOX = Scanner([("pattern", "red fox")])


def masked(body: bytes, scanner: Scanner, form: str = "completions", scope: TextScope = TextScope.MESSAGES) -> bytes:
    found = request_texts(body, form)
    changes = Changes(body)
    for run in found.of(frozenset((scope,))):
        edits = scanner.edits(run.text(body))
        changes.text(run.pieces, run.joiner, [edit[:3] for edit in edits])
    return changes.done()


def chat(*parts: object) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": list(parts)}]}).encode()


def part(text: str, **more: object) -> dict[str, object]:
    return {"type": "text", "text": text, **more}


def test_a_match_across_the_joiner_only_counts_with_it() -> None:
    body = chat(part("reach jo@"), part("ex.io"))
    assert masked(body, EMAIL) == body


def test_a_match_over_two_parts_leaves_one() -> None:
    assert json.loads(masked(chat(part("red"), part("fox")), FOX))["messages"][0]["content"] == [part("<masked>")]


def test_what_is_around_a_match_over_two_parts_stays_where_it_is() -> None:
    body = chat(part("a red", cache_control={"type": "ephemeral"}), part("fox b"), part("c"))
    content = json.loads(masked(body, FOX))["messages"][0]["content"]
    assert content == [part("a ", cache_control={"type": "ephemeral"}), part("<masked> b"), part("c")]


def test_a_match_over_two_messages_is_none() -> None:
    body = b'{"messages":[{"role":"user","content":"red"},{"role":"user","content":"fox"}]}'
    assert masked(body, FOX) == body


def test_all_other_bytes_stay() -> None:
    body = b'{ "x":1.0,\t"messages" : [ {"content":"\\u00e9 a@b.co \\/ caf\xc3\xa9","role":"user"} ] , "y" :\n null}'
    assert masked(body, EMAIL) == body.replace(b"a@b.co", b"<EMAIL_ADDRESS>")


def test_an_escaped_address_is_found_too() -> None:
    body = b'{"messages":[{"role":"user","content":"to a\\u0040b.co!"}]}'
    assert masked(body, EMAIL) == b'{"messages":[{"role":"user","content":"to <EMAIL_ADDRESS>!"}]}'


def test_tool_input_is_masked_in_its_own_quotes() -> None:
    arguments = json.dumps({"to": "a@b.io"})
    body = json.dumps({"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": arguments}}]}]}).encode()
    assert masked(body, EMAIL) == body
    done = json.loads(masked(body, EMAIL, scope=TextScope.TOOL_INPUT))
    assert json.loads(done["messages"][0]["tool_calls"][0]["function"]["arguments"]) == {"to": "<EMAIL_ADDRESS>"}


def test_raw_tool_input_that_would_break_is_refused() -> None:
    body = b'{"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"to":"a@b.io","n":12}}]}]}'
    done = masked(body, EMAIL, "messages", TextScope.TOOL_INPUT)
    assert json.loads(done)["messages"][0]["content"][0]["input"] == {"to": "<EMAIL_ADDRESS>", "n": 12}
    with pytest.raises(PeekError):
        masked(body, Scanner([("pattern", "[0-9]+")]), "messages", TextScope.TOOL_INPUT)


def test_marks_that_no_longer_fit_go_with_the_text() -> None:
    body = json.dumps(
        {
            "choices": [
                {"message": {"content": "a@b.co", "annotations": [1]}, "logprobs": {"content": [{"token": "a@"}]}},
                {"message": {"content": "ok", "annotations": [1]}, "logprobs": {"content": []}},
            ]
        }
    ).encode()
    found = reply_texts(body, "completions")
    changes = Changes(body)
    for run in found.runs:
        changes.text(run.pieces, run.joiner, [edit[:3] for edit in EMAIL.edits(run.text(body))])
    first, second = json.loads(changes.done())["choices"]
    assert first == {"message": {"content": "<EMAIL_ADDRESS>", "annotations": []}, "logprobs": None}
    assert second["message"]["annotations"] == [1]


@settings(max_examples=effort.examples(200), deadline=None)
@given(st.lists(st.text("ab \u00e9\n", max_size=5), min_size=1, max_size=4), st.text("ab\u00e9 ", max_size=12))
def test_a_new_text_is_what_is_said_afterwards(parts: list[str], new: str) -> None:
    body = chat(*(part(text) for text in parts))
    run = request_texts(body, "completions").runs[0]
    old = run.text(body)
    changes = Changes(body)
    changes.text(run.pieces, run.joiner, difference(old, new.encode()))
    runs = request_texts(changes.done(), "completions").runs
    said = runs[0].text(changes.done()).decode()
    # Only blanks between parts can be more than was asked for.
    assert said.replace(" ", "") == new.replace(" ", "")
    if old.decode() == new:
        assert changes.done() == body


@given(st.text(), st.text())
def test_the_difference_makes_one_text_of_the_other(old: str, new: str) -> None:
    before, after = old.encode("utf-8", "replace"), new.encode("utf-8", "replace")
    found = before
    for start, stop, text in difference(before, after):
        found = before[:start] + text + before[stop:]
    assert found == after


def test_the_difference_keeps_all_that_both_texts_begin_and_end_with() -> None:
    chance = random.Random(3)
    for _ in range(5000):
        old, new = ("".join(chance.choices("abé", k=chance.randrange(9))) for _ in range(2))
        if old == new:
            assert difference(old.encode(), new.encode()) == []
            continue
        head = max(at for at in range(len(old) + 1) if new.startswith(old[:at]))
        tail = max(at for at in range(len(old) - head + 1) if new[head:].endswith(old[len(old) - at :]))
        start, stop = len(old[:head].encode()), len(old[: len(old) - tail].encode())
        assert difference(old.encode(), new.encode()) == [(start, stop, new[head : len(new) - tail].encode())]
