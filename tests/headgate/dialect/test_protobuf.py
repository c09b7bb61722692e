"""Structs there and back."""

from __future__ import annotations

from typing import Any

from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from headgate.dialect.protobuf import fill_struct, struct_values

VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_what_goes_in_comes_out(values: dict[str, Any]) -> None:
    struct = Struct()
    fill_struct(struct, values)
    assert struct_values(Struct.FromString(struct.SerializeToString())) == values


def test_numbers_are_doubles_and_half_characters_are_replaced() -> None:
    struct = Struct()
    fill_struct(struct, {"n": 2**60, "\ud800": "a\udfff"})
    assert struct_values(struct) == {"n": float(2**60), "?": "a?"}
