"""Members of a JSON text replaced in place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.dialect.mcp.edit import replaced, with_members, without_members

# Without halves of surrogate pairs, which are no UTF-8.
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), VALUES, st.sampled_from([None, 1, 2]))
def test_it_is_what_objects_would_be(other: dict[str, Any], value: Any, indent: int | None) -> None:
    document = {**other, "params": {**other, "name": "old", "z": other}}
    changed = {**document, "params": {**document["params"], "name": value}}
    text = json.dumps(document, indent=indent).encode()
    assert json.loads(replaced(text, ("params", "name"), value)) == changed


@pytest.mark.parametrize(
    ("text", "path", "found"),
    [
        (b'{"a":1.10,"b" : "x" , "c":1e3}', ("b",), b'{"a":1.10,"b" : "\xc3\xa9" , "c":1e3}'),
        (b' {"a":{"b":{"b":1}}} ', ("a", "b", "b"), b' {"a":{"b":{"b":"\xc3\xa9"}}} '),
        (b'{"a":1,"a":2}', ("a",), b'{"a":1,"a":"\xc3\xa9"}'),
        (b'{"a":1}', ("b",), b'{"a":1}'),
        (b'{"a":1}', ("a", "b"), b'{"a":1}'),
        (b"[1]", ("a",), b"[1]"),
        (b"{}", ("a",), b"{}"),
        (b'{"a":"}","b":"\\"{"}', ("b",), b'{"a":"}","b":"\xc3\xa9"}'),
    ],
)
def test_the_rest_stays_byte_for_byte(text: bytes, path: tuple[str, ...], found: bytes) -> None:
    assert replaced(text, path, "é") == found


@pytest.mark.parametrize(
    ("text", "names", "found"),
    [
        ('{"r":{"a":1.10,"b":2,"c":3}}', ("b",), '{"r":{"a":1.10,"c":3}}'),
        ('{"r":{"a":1,"b":2}}', ("a", "b"), '{"r":{}}'),
        ('{"r": { "a" : 1 , "b" : {"a":2} } , "a": 5}', ("a",), '{"r": {"b" : {"a":2}} , "a": 5}'),
        ('{"r":{"a":1}}', ("b",), '{"r":{"a":1}}'),
        ('{"r":{}}', ("a",), '{"r":{}}'),
        ('{"r":[1]}', ("a",), '{"r":[1]}'),
        ('{"x":{"a":1}}', ("a",), '{"x":{"a":1}}'),
    ],
)
def test_members_go_and_the_rest_stays(text: str, names: tuple[str, ...], found: str) -> None:
    assert without_members(text.encode(), ("r",), names).decode() == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"r":{"a":1.10}}', '{"r":{"b":2,"a":1.10}}'),
        ('{"r":{}}', '{"r":{"a":0,"b":2}}'),
        ('{"r":5}', '{"r":5}'),
        ("{}", "{}"),
    ],
)
def test_members_come_where_they_are_missing(text: str, found: str) -> None:
    assert with_members(text.encode(), ("r",), {"a": 0, "b": 2}).decode() == found
