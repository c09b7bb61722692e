"""JSON in slices: the same values and the same refusals as in one call, and no call with more than a slice."""

from __future__ import annotations

import json
from typing import Any

import effort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_engine.llm.translate.readers import Garbage, load_json
from headgate_engine.llm.translate.sliced import MAX_DEPTH, SLICE, cuts, dump_pieces, dump_sliced, load_sliced
from headgate_engine.llm.translate.writers import dump_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner, max_size=6),
    max_leaves=30,
)
SIZES = st.integers(1, 40)


@settings(max_examples=effort.examples(300), deadline=None)
@given(VALUES, SIZES, st.sampled_from([None, 1]), st.booleans())
def test_the_same_value_as_in_one_call(value: Any, size: int, indent: int | None, escaped: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    assert load_sliced(text, size) == load_json(text) == value
    assert load_json(dump_sliced(value, size)) == value
    assert dump_sliced(value) == dump_json(value)


@settings(max_examples=effort.examples(500), deadline=None)
@given(VALUES, SIZES, st.data())
def test_what_is_no_json_is_refused_as_in_one_call(value: Any, size: int, data: st.DataObject) -> None:
    text = bytearray(json.dumps(value).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text[at : at + data.draw(st.integers(0, 1))] = data.draw(st.sampled_from([b"", b",", b"[", b"]", b"{", b"}", b'"', b":", b"\\", b" ", b"1"]))
    raw = bytes(text)
    try:
        expected = load_json(raw)
    except Garbage:
        with pytest.raises(Garbage):
            load_sliced(raw, size)
    else:
        assert load_sliced(raw, size) == expected


PIECES = ("a", "é", "世", "\U0001f600", "\ud83d", "\ude00", '"', "\\", "\n", "/", "u", "d83d", "\\ud83d", "x" * 9)


@settings(max_examples=effort.examples(400), deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.integers(1, 12), st.booleans())
def test_long_texts_are_cut_between_characters(value: str, size: int, escaped: bool) -> None:
    """Also where surrogates are alone, in another order or in pairs; what the decoder refuses is refused in pieces as well."""
    for raw in (json.dumps(value, ensure_ascii=escaped), json.dumps(value).replace("ud8", "uD8").replace("ude", "uDE")):
        text = b' {"a" : ' + raw.encode("utf-8", "surrogatepass") + b" } "
        try:
            expected = load_json(text)
        except Garbage:
            with pytest.raises(Garbage):
                load_sliced(text, size)
            continue
        assert load_sliced(text, size) == expected
        assert load_sliced(text.strip()[7:-2], size) == expected["a"]
        assert load_json(dump_sliced(expected, size)) == load_json(dump_json(expected))


@pytest.mark.parametrize("bad", [b'"abc', b'"abc" 1', b'"ab\\"', b'"abcdefg\\q"', b'"abcdef\\u12"', b'"abcd\nefgh"', b'"abcdef\\u12g4hijk"', b'"abcd\xffefg"'])
def test_long_texts_that_are_none(bad: bytes) -> None:
    for size in range(1, 12):
        for text in (bad, b"[" + bad + b"]", b'{"a":' + bad + b"}"):
            with pytest.raises(Garbage):
                load_sliced(text, size)


def test_a_long_text_is_read_and_written_in_pieces() -> None:
    value = {"messages": [{"role": "user", "content": "a word, \u4e16 " * 200_000}]}
    text = json.dumps(value, ensure_ascii=False).encode()
    assert load_sliced(text) == value
    assert dump_sliced(value) == dump_json(value)


def test_commas_at_the_edges_of_slices() -> None:
    long = b'"' + b"x" * 50 + b'"'
    for text in (b"[%b,]", b"[,%b]", b"[%b,,%b]", b'{"a":%b,}', b'{,"a":%b}', b'{"a":%b,,"b":%b}', b"[%b %b]", b'{"a" %b}', b'{"a":}%b', b"[%b]]", b"[%b}", b"[%b"):
        raw = text.replace(b"%b", long)
        with pytest.raises(Garbage):
            load_json(raw)
        with pytest.raises(Garbage):
            load_sliced(raw, 20)


def test_members_of_one_name_are_the_last_one() -> None:
    text = b'{"a":[1,2,3,4,5,6,7,8,9],"b":1,"a":[9,8,7,6,5,4,3,2,1]}'
    assert load_sliced(text, 4) == {"a": [9, 8, 7, 6, 5, 4, 3, 2, 1], "b": 1}


def test_no_run_is_longer_than_two_slices_but_for_a_single_member() -> None:
    text = json.dumps([[1] * n for n in range(200)] + ["x" * 3000, 1, 2]).encode()
    found = cuts(text, 1000)
    assert text[1:-1] == b",".join(text[start:stop] for start, stop in found)
    for start, stop in found:
        assert stop - start <= 2000 or len(json.loads(b"[" + text[start:stop] + b"]")) == 1
    assert len(found) > 50


@pytest.mark.parametrize("bad", [b"", b"1", b'"x"', b"[1", b"[1,2"])
def test_what_cannot_be_cut(bad: bytes) -> None:
    with pytest.raises(ValueError, match="neither"):
        cuts(bad, 10)


def test_deep_nesting_is_cut_to_a_depth_alone() -> None:
    deep = b"[" * 200 + b"1" + b"]" * 200
    assert load_sliced(deep, 1) == load_json(deep)
    hopeless = b"[" * 500_000
    with pytest.raises(Garbage):
        load_sliced(hopeless)
    value: Any = "x" * 100
    for _ in range(MAX_DEPTH + 5):
        value = [value, 1]
    assert load_json(dump_sliced(value, 10)) == value


def test_long_lists_are_written_in_slices() -> None:
    value = {"a": [{"n": number, "t": "x" * (number % 50)} for number in range(20_000)], "b": {"c": [1.5] * 30_000}}
    text = dump_sliced(value)
    assert text == dump_json(value)
    assert load_sliced(text) == value
    assert len(text) > 8 * SLICE


@pytest.mark.parametrize("value", [{1: 2}, [{1: 2}], {"a": {"b": object()}}])
def test_what_json_cannot_say(value: Any) -> None:
    with pytest.raises(TypeError):
        dump_sliced(value, 1)


@pytest.mark.parametrize("bad", [None, 5, object()])
def test_wrong_types_are_refused(bad: Any) -> None:
    for call in (load_sliced, lambda one: cuts(one, 5)):
        with pytest.raises(TypeError):
            call(bad)
    for size in (0, -1):
        with pytest.raises(ValueError, match="byte"):
            load_sliced(b"[]", size)
        with pytest.raises(ValueError, match="byte"):
            dump_sliced([], size)


@pytest.mark.parametrize("long", ["word " * 3_000, ["word " * 3_000], {"text": "word " * 3_000, "n": [1] * 2_000}], ids=["text", "list", "object"])
@pytest.mark.parametrize("place", [0, 1, 63, 500, 999])
def test_a_long_value_within_a_run_of_short_ones_is_cut_as_well(long: Any, place: int) -> None:
    turns: list[Any] = [{"role": "user", "content": "hi"} for _ in range(1_000)]
    turns[place] = {"role": "user", "content": long}
    value = {"model": "m", "messages": turns, "stop": ["a", "b"]}
    pieces = dump_pieces(value, 1_000)
    assert max(len(piece) for piece in pieces) <= 2_000
    assert b"".join(pieces) == dump_json(value)
    # Short ones go together.
    assert sum(len(piece) > 500 for piece in pieces) > 20
