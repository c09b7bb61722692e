"""Lists in JSON texts, cut up by offsets, against the standard parser."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_engine.peek.items import Item, list_of
from headgate_engine.peek.rpc import parse


def response(result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}, ensure_ascii=False).encode()


def tools(text: bytes) -> tuple[tuple[int, int], list[Item]]:
    return list_of(parse(text), b"tools", b"name")


ITEM = {"name": "a", "description": 'say "x" \\', "inputSchema": {"type": "object", "properties": {"name": {}}}, "n": 1.5}


def test_items_are_cut_out_as_they_stand() -> None:
    text = response({"tools": [ITEM, {"name": "b", "_meta": {"ui": {}}}], "nextCursor": "more"})
    (start, stop), items = tools(text)
    assert json.loads(text[start:stop]) == [item.decoded() for item in items] == [ITEM, {"name": "b", "_meta": {"ui": {}}}]
    assert [(item.name, item.has_meta, item.odd) for item in items] == [("a", False, False), ("b", True, False)]
    assert all(item.raw in text for item in items)


@pytest.mark.parametrize("name", ["t_a", 'quo"te', "back\\slash", "ümlaut", "tab\t", "", "\ud800"])
def test_a_renamed_item_is_the_same_but_for_its_name(name: str) -> None:
    _, [item] = tools(response({"tools": [ITEM]}))
    assert json.loads(item.renamed(name)) == {**ITEM, "name": name}


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        (b'{"tools" : [ ] }', []),
        (b'{"tools":[1,"x",null,[{"name":"no"}],{"name":"a"},{"name":5},{}]}', [None] * 4 + ["a", None, None]),
        (b'{"tools":[{"\\u006eame":"esc\\u0061ped"}]}', ["escaped"]),
        (b'{"other":[{"name":"a"}]}', []),
        (b'{"tools":{"name":"a"}}', []),
        (b'{"x":{"tools":[{"name":"inner"}]},"tools":[\n{"a":"]}","name":"b"} ,\t{"name":"c"}]}', ["b", "c"]),
        (b'{"tools":[{"name":"first"}],"tools":[{"name":"last"}]}', ["last"]),
        (b'{"tools":[{"name":"first"}],"\\u0074ools":null}', []),
    ],
)
def test_what_is_an_item_and_what_its_name(raw: bytes, names: list[str | None]) -> None:
    _, items = tools(b'{"jsonrpc":"2.0","id":1,"result":' + raw + b"}")
    assert [item.name for item in items] == names


def test_a_name_that_stands_twice_is_told() -> None:
    _, [item] = tools(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","name":"b"}]}}')
    assert (item.odd, item.name) == (True, "b")


def test_what_has_no_name_cannot_be_renamed() -> None:
    _, [item] = tools(response({"tools": [{}]}))
    with pytest.raises(ValueError, match="no name"):
        item.renamed("a")
    with pytest.raises(TypeError):
        Item()


def test_errors_and_other_results_have_no_list() -> None:
    assert tools(b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}') == ((0, 0), [])
    assert tools(b'{"jsonrpc":"2.0","id":1,"result":null}') == ((0, 0), [])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["name", "_meta", "a", "tools", '"', "\\"]), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["tools", "x", '"tools"']), VALUES, max_size=3), st.sampled_from([None, 1]))
def test_law_items_are_those_of_the_standard_parser(result: dict[str, Any], indent: int | None) -> None:
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}, indent=indent).encode()
    found = result.get("tools")
    (start, stop), items = tools(text)
    assert [item.decoded() for item in items] == (found if isinstance(found, list) else [])
    if isinstance(found, list):
        assert json.loads(text[start:stop]) == found
        wanted = [one.get("name") if isinstance(one, dict) else None for one in found]
        assert [item.name for item in items] == [name if isinstance(name, str) else None for name in wanted]
        assert [item.has_meta for item in items] == [isinstance(one, dict) and "_meta" in one for one in found]
