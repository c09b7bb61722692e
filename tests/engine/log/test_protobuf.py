"""Attributes as protocol buffers, read with the library's own messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValueList

from headgate_engine.log.protobuf import attribute, message


def plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(one) for one in value.array_value.values]
    if kind == "kvlist_value":
        return {one.key: plain(one.value) for one in value.kvlist_value.values}
    return None if kind is None else getattr(value, kind)


def read(encoded: bytes) -> tuple[str, Any]:
    [found] = KeyValueList.FromString(encoded).values
    return found.key, plain(found.value)


VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"))
    | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3),
    max_leaves=6,
)


@given(st.text(st.characters(codec="utf-8"), max_size=300), VALUES)
def test_a_value_comes_back(name: str, value: Any) -> None:
    assert read(attribute(name, value)) == (name, value)


@pytest.mark.parametrize("length", [0, 1, 117, 118, 119, 120, 121, 122, 123, 127, 128, 129, 16383, 16384])
def test_every_length_of_text_is_told(length: int) -> None:
    wanted = "x" * length if length <= 8192 else "x" * 8192
    assert read(attribute("k", "x" * length)) == ("k", wanted)


@pytest.mark.parametrize("value", ["\ud800", "é" * 5000, b"\xff".decode("latin-1")])
def test_what_is_written_is_utf_8(value: str) -> None:
    _, found = read(attribute("k", value))
    assert len(found) <= 8192


@pytest.mark.parametrize(("value", "shown"), [(2**63, str(2**63)), (-(2**70), str(-(2**70))), (None, "None"), (range(2), "range(0, 2)")])
def test_other_values_become_their_text(value: Any, shown: str) -> None:
    assert read(attribute("k", value)) == ("k", shown)


def test_what_is_very_deep_becomes_text() -> None:
    value: Any = 1
    for _ in range(50):
        value = [value]
    _, found = read(attribute("k", value))
    for _ in range(8):
        [found] = found
    assert isinstance(found, str)


@pytest.mark.parametrize("length", [0, 1, 127, 128, 70000])
def test_a_message_has_its_length(length: int) -> None:
    content = b"\x0a" + (length.to_bytes(1, "big") if length < 128 else bytes([length & 127 | 128, *varint(length >> 7)]))
    content += b"k" * length
    found = AnyValue.FromString(message(0x32, message(0x0A, content)))
    assert found.kvlist_value.values[0].key == "k" * length


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)
