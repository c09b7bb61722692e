"""The table of connection and forwarding fields, and that the parser and the writer follow it."""

from __future__ import annotations

import pytest

from headgate_engine.context.field_names import (
    FORBIDDEN_TRAILERS,
    HOP_BY_HOP,
    MESSAGE_FRAMING,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    REQUEST_FRAMING,
    encoded,
)
from headgate_engine.steps.headers import HeaderEdit
from headgate_engine.steps.transform import FRAMING


def test_each_set_holds_the_one_before_it() -> None:
    assert HOP_BY_HOP < MESSAGE_FRAMING < REQUEST_FRAMING
    assert encoded(HOP_BY_HOP) == {name.encode() for name in HOP_BY_HOP}
    assert all(name == name.lower() for name in REQUEST_FRAMING)


def test_a_trailer_and_an_expression_write_none_of_them() -> None:
    names = REQUEST_FRAMING | {PROXY_AUTHENTICATE, PROXY_AUTHORIZATION}
    assert names < FORBIDDEN_TRAILERS
    assert encoded(REQUEST_FRAMING) == FRAMING


@pytest.mark.parametrize("name", sorted(MESSAGE_FRAMING))
def test_a_header_modifier_refuses_them(name: str) -> None:
    with pytest.raises(ValueError, match="belongs to the connection"):
        HeaderEdit([(name.title(), "x")], [], [])
