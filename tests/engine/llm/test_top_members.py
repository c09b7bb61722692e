"""Members that were looked for before an edit: the edit comes to the same, and hostile bodies fill no memory."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.llm import edit_known
from headgate_engine.llm.edit import edit
from headgate_engine.llm.top_members import read_ahead, read_members

NAMES = st.sampled_from(["model", "a", "b", "é", 'quo"te', "back\\slash", ""])
VALUES = st.sampled_from([b"1", b'"x\\"y"', b"[1, {}]", b'{"model": "in]}"}', b"true", b'""', b"-1.5e3"])
BLANKS = st.sampled_from([b"", b" ", b"\n\t"])


@st.composite
def objects(draw: st.DrawFn) -> bytes:
    """Return an object whose members may stand twice, with blanks anywhere."""
    parts = []
    for name, value in draw(st.lists(st.tuples(NAMES, VALUES), max_size=6)):
        raw = json.dumps(name, ensure_ascii=draw(st.booleans())).encode()
        parts.append(draw(BLANKS) + raw + draw(BLANKS) + b":" + draw(BLANKS) + value + draw(BLANKS))
    return draw(BLANKS) + b"{" + (b",".join(parts) or draw(BLANKS)) + b"}" + draw(BLANKS)


EDITS = st.dictionaries(NAMES, VALUES, max_size=3)


@given(objects(), EDITS, EDITS, st.sets(NAMES, max_size=4))
def test_an_edit_with_known_members_is_the_same(
    body: bytes, sets: dict[str, bytes], defaults: dict[str, bytes], removes: set[str]
) -> None:
    """`test_edit.py` compares edit() with dictionaries."""
    assert edit_known(body, read_members(body), sets, defaults, removes) == edit(body, sets, defaults, removes)


def test_what_routing_reads_and_where_members_stand() -> None:
    body = b'{"model": "m", "stream": true}'
    peek, members = read_ahead(body)
    assert peek is not None
    assert (peek.has_model, peek.stream) == (True, True)
    assert edit_known(body, members, {"model": b'"n"'}, {}, ()) == b'{"model": "n", "stream": true}'
    assert read_ahead(b'{"model": ') == (None, None)
    peek, members = read_ahead(b"[1]")
    assert peek is not None
    assert (peek.is_object, members) == (False, None)


def test_many_members_are_not_kept() -> None:
    many = b"{%s}" % b",".join(b'"a%d":1' % number for number in range(5000))
    assert read_members(many) is None
    assert edit_known(many, None, {"a7": b"2"}, {}, ("a8",)) == many.replace(b'"a7":1,"a8":1', b'"a7":2')


def test_what_is_no_object_is_refused() -> None:
    for text in (b"", b"[]", b'"a"', b'{"a"', b'{"a":'):
        with pytest.raises(ValueError):
            read_members(text)
