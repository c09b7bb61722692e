"""The texts that digests are made of."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import pytest

from headgate_engine.document.digest import write_values


class Pair:
    def __init__(self, one: object, other: object) -> None:
        self.one = one
        self.other = other


class Named:
    def __init__(self, name: str) -> None:
        self.name = name


def learn(kind: type) -> tuple[Any, bool]:
    if kind is Pair:
        return attrgetter("one", "other"), False
    if kind is Named:
        return attrgetter("name"), True
    raise TypeError(kind.__name__)


def written(*values: object) -> list[str]:
    out: list[str] = []
    write_values(values, {}, learn, out)
    return out


def test_values_are_written_in_their_order() -> None:
    assert written("a", 1, b"c", None, True, 1.5) == ["'a'", "1", "b'c'", "None", "True", "1.5"]
    assert written(("a", ()), "b") == ["(", "'a'", "(", ")", ")", "'b'"]
    assert written(Pair(None, (Named("n"),))) == ["Pair", "None", "(", "n", ")", ";"]


def test_a_class_is_looked_at_once() -> None:
    kinds: dict[type, Any] = {}
    asked: list[type] = []

    def noted(kind: type) -> tuple[Any, bool]:
        asked.append(kind)
        return learn(kind)

    write_values([Named("a"), Named("b"), (Named("c"),)], kinds, noted, [])
    assert asked == [Named]
    assert list(kinds) == [Named]


def test_other_classes_are_refused() -> None:
    for value in ([1], {"a": 1}, 1j, Exception()):
        with pytest.raises(TypeError):
            written((value,))


def test_readers_must_return_what_they_promise() -> None:
    with pytest.raises(TypeError):
        write_values([Named("a")], {Named: (attrgetter("name"), False)}, learn, [])
    with pytest.raises(TypeError):
        write_values([Pair(1, 2)], {Pair: (attrgetter("one"), True)}, learn, [])
