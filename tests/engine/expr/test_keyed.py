"""Values are kept by what expressions say of requests; headgate.policy.ext_authz.cache has the tests of times and bounds."""

from __future__ import annotations

import pytest

from headgate.expr.compile import compile_expression
from headgate_engine.context.request import make_context
from headgate_engine.expr.keyed import KeyedValues


def table(*keys: str, most: int = 10) -> KeyedValues:
    return KeyedValues([compile_expression(text, "route", {}) for text in keys], most)


@pytest.mark.parametrize(
    "text", ["'a'", "b'a'", "1", "1u", "1.0", "true", "null", "duration('1s')", "timestamp(1)", "request.path"]
)
def test_scalars_are_keys(text: str) -> None:
    values = table(text)
    key = values.key(make_context())
    assert key is not None
    values.keep(key, "kept", 100.0, 1.0)
    assert values.get(key) == "kept"
    assert values.key(make_context()) == key


@pytest.mark.parametrize("text", ["[1]", "{'a': 1}", "jwt.sub", "request.headers['absent']", "type(1)"])
def test_others_are_none(text: str) -> None:
    assert table("'a'", text).key(make_context()) is None


def test_equal_values_of_several_types_are_several_keys() -> None:
    assert len({table(text).key(make_context()) for text in ("1", "1u", "1.0", "true", "'1'", "b'1'")}) == 6


def test_without_expressions_there_are_no_keys() -> None:
    assert table().key(make_context()) is None


def test_the_clock_is_that_of_the_system() -> None:
    values = table("request.path")
    key = values.key(make_context())
    assert key is not None
    values.keep(key, "kept", 0.0, 0.0)
    assert (values.get(key), len(values)) == (None, 0)
    values.keep(key, "kept", 3600.0, 3600.0)
    assert values.get(key) is None, "its last part: this one renews it"
    assert values.get(key) == "kept"


def test_the_least_recently_used_one_goes() -> None:
    values = table("request.path", most=3)
    keys = [values.key(make_context(target=f"/{number}")) for number in range(5)]
    for key in keys[:3]:
        assert key is not None
        values.keep(key, key, 100.0, 1.0)
    for key in (keys[2], keys[0], keys[0], keys[2]):
        assert key is not None
        assert values.get(key) == key
    for key in keys[3:]:
        assert key is not None
        values.keep(key, key, 100.0, 1.0)
    assert [key is not None and values.get(key) is not None for key in keys] == [False, False, True, True, True]


def test_a_program_is_needed() -> None:
    with pytest.raises(TypeError):
        KeyedValues([None], 1)  # type: ignore[list-item]
