from __future__ import annotations

import json

import effort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_engine.guard.spans import check, items, members, quote, splice, string_value
from headgate_engine.peek.json import PeekError

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
FORMS: tuple[dict[str, object], ...] = ({}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False})


def rebuilt(text: bytes, start: int, stop: int) -> object:
    """The value at a span, read by the spans of its parts."""
    if text[start] == ord("{"):
        return {name: rebuilt(text, low, high) for name, low, high in members(text, start)}
    if text[start] == ord("["):
        return [rebuilt(text, low, high) for low, high in items(text, start)]
    if text[start] == ord('"'):
        return string_value(text, start, stop).decode()
    return json.loads(text[start:stop])


@settings(max_examples=effort.examples(300), deadline=None)
@given(VALUES, st.sampled_from(FORMS))
def test_spans_tell_what_the_standard_parser_tells(value: object, form: dict[str, object]) -> None:
    text = json.dumps(value, **form).encode("utf-8", "surrogatepass")  # type: ignore[arg-type]
    check(text)
    assert rebuilt(text, 0, len(text)) == json.loads(text)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@settings(max_examples=effort.examples(300), deadline=None)
@given(TEXTS, TEXTS, st.booleans(), st.data())
def test_a_splice_changes_what_is_meant_and_nothing_else(
    text: str, new: str, ascii_only: bool, data: st.DataObject
) -> None:
    raw = json.dumps(text, ensure_ascii=ascii_only).encode()
    assert string_value(raw, 0, len(raw)).decode() == text
    first = data.draw(st.integers(0, len(text)))
    last = data.draw(st.integers(first, len(text)))
    start, stop = len(text[:first].encode()), len(text[:last].encode())
    done = splice(raw, 0, len(raw), [(start, stop, new.encode())])
    assert json.loads(done) == text[:first] + new + text[last:]
    # Bytes outside are those of before, escapes and all.
    head = json.dumps(text[:first], ensure_ascii=ascii_only).encode()[1:-1]
    tail = json.dumps(text[last:], ensure_ascii=ascii_only).encode()[1:-1]
    assert done.startswith(b'"' + head)
    assert done.endswith(tail + b'"')


@given(TEXTS)
def test_a_quoted_text_says_itself(text: str) -> None:
    assert json.loads(quote(text.encode())) == text


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\ud83d"', "\ufffd"),
        (rb'"\ude00x"', "\ufffdx"),
        (rb'"\ud83dA"', "\ufffdA"),
        (rb'"\/\b\f\n\r\t\"\\"', '/\b\f\n\r\t"\\'),
    ],
)
def test_escapes(raw: bytes, told: str) -> None:
    assert string_value(raw, 0, len(raw)).decode() == told


def test_doubles_are_all_there() -> None:
    text = rb'{"a":1,"\u0061":2 , "a" : [ 3 ] }'
    assert [(name, text[low:high]) for name, low, high in members(text, 0)] == [("a", b"1"), ("a", b"2"), ("a", b"[ 3 ]")]


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(PeekError):
        check(b'{"a":1')


def test_edits_must_not_overlap() -> None:
    with pytest.raises(ValueError, match="overlap"):
        splice(b'"abc"', 0, 5, [(0, 2, b"x"), (1, 3, b"y")])
