"""In-place edits of JSON objects, against the json module."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_engine.llm.edit import edit

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["model", "a", "b", "é", 'quo"te', "back\\slash"])


def test_what_is_not_named_keeps_its_bytes() -> None:
    body = b'{ "z" : [1, 2.50e1],\n "model":"a" ,"cache_control": {"type" : "ephemeral"}, "t":"\\u00e9" }'
    assert edit(body, {"model": b'"b"'}) == body.replace(b'"a"', b'"b"')


@pytest.mark.parametrize(
    ("body", "sets", "defaults", "removes", "expected"),
    [
        (b"{}", {"a": b"1"}, {}, (), b'{"a":1}'),
        (b"{ }", {}, {"a": b"1", "b": b"2"}, (), b'{"a":1,"b":2 }'),
        (b'{"a":1}', {}, {"a": b"2"}, (), b'{"a":1}'),
        (b'{"a":1, "b":2}', {}, {}, ("a",), b'{"b":2}'),
        (b'{"a":1, "b":2}', {}, {}, ("b",), b'{"a":1}'),
        (b'{"a":1, "b":2, "c":3}', {}, {}, ("b",), b'{"a":1, "c":3}'),
        (b'{"a":1}', {}, {}, ("a",), b"{}"),
        (b'{"a":1,"a":2}', {"a": b"3"}, {}, (), b'{"a":3,"a":3}'),
        (b'{"\\u0061":1}', {"a": b"2"}, {}, (), b'{"\\u0061":2}'),
    ],
)
def test_members_are_set_added_and_removed(body, sets, defaults, removes, expected) -> None:
    assert edit(body, sets, defaults, removes) == expected


@pytest.mark.parametrize("body", [b"", b"[1]", b'"a"', b"{", b'{"a":}'])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        edit(body, {})


@given(st.dictionaries(NAMES, VALUES), st.dictionaries(NAMES, VALUES), st.dictionaries(NAMES, VALUES), st.sets(NAMES),
       st.sampled_from([None, 1, "\t"]))  # fmt: skip
def test_the_result_is_what_a_dictionary_would_give(before, sets, defaults, removes, indent) -> None:
    def raw(values):
        return {name: json.dumps(value).encode() for name, value in values.items()}

    found = json.loads(edit(json.dumps(before, indent=indent).encode(), raw(sets), raw(defaults), removes))
    expected = {**defaults, **before, **sets}
    assert found == {name: value for name, value in expected.items() if name not in removes}
