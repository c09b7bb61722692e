"""A method is what the standard library writes for the same fields."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

from headgate.document.field_methods import FieldPart, method

LACKS = dataclasses.MISSING


def part(default: Any = LACKS, factory: Any = LACKS, **more: bool) -> FieldPart:
    return FieldPart(**{"default": default, "factory": factory, "init": True, "compare": True, "hash": True, "kw_only": False, **more})


PARTS = {
    "first": part(), "self_made": part(factory=list), "default": part(2), "fixed": part(7, init=False), "own": part(factory=dict, init=False),
    "late": part(init=False, compare=False, hash=False), "named": part(kw_only=True), "shown": part(3, kw_only=True, hash=False),
}  # fmt: skip
WAYS: list[tuple[tuple[int, ...], dict[str, int]]] = [
    ((1,), {"named": 4}), ((1, 5, 6), {"named": 4, "shown": 5}), ((), {"first": 1, "named": 4}), ((1,), {}), ((1, 2, 3, 4), {"named": 5}),
    ((1,), {"named": 4, "fixed": 5}), ((1,), {"named": 4, "first": 1}), ((1,), {"named": 4, "strange": 1}),
]  # fmt: skip


def classes(frozen: bool) -> tuple[Any, Any]:
    """Return the standard class, and one with methods of our own."""

    def later(self: Any) -> None:
        object.__setattr__(self, "late", (self.first, self.fixed))

    fields = [
        (name, Any, dataclasses.field(
            **({} if one.default is LACKS else {"default": one.default}), **({} if one.factory is LACKS else {"default_factory": one.factory}),
            init=one.init, compare=one.compare, hash=one.hash, kw_only=one.kw_only,
        ))
        for name, one in PARTS.items()
    ]  # fmt: skip
    standard = dataclasses.make_dataclass("Made", fields, frozen=frozen, slots=True, namespace={"__post_init__": later})
    mine = type("Made", (), {"__slots__": tuple(PARTS), "__post_init__": later})
    for name in ("__init__", "__eq__", "__hash__"):
        setattr(mine, name, method(name, PARTS, mine, frozen))
    return standard, mine


@pytest.mark.parametrize("frozen", [True, False])
def test_objects_are_made_and_refused_alike(frozen: bool) -> None:
    standard, mine = classes(frozen)
    names = [list(inspect.signature(one).parameters) for one in (standard, mine)]
    assert names[0] == names[1]
    kinds = [[value.kind for value in inspect.signature(one).parameters.values()] for one in (standard, mine)]
    assert kinds[0] == kinds[1]
    for args, given in WAYS:
        found: list[Any] = []
        for kind in (standard, mine):
            try:
                one = kind(*args, **given)
                found.append([getattr(one, name) for name in PARTS])
            except TypeError as error:
                found.append(str(error))
        assert found[0] == found[1]
    first, second = mine(1, named=2), mine(1, named=2)
    assert first.self_made is not second.self_made
    assert first.own is not second.own


def test_objects_are_compared_and_hashed_alike() -> None:
    for kind in classes(True):
        one, same, other = (kind(1, (), named=named) for named in (2, 2, 3))
        for made in (one, same, other):
            object.__setattr__(made, "own", ())
        object.__setattr__(same, "late", "not compared")
        assert one == same
        assert one != other
        assert one != object()
        assert hash(one) == hash(same) != hash(other)
        assert hash(one) == hash(kind_of_values(one))
    assert method("__eq__", {}, object, True)(1, 2) is True
    assert method("__hash__", {}, object, True)(1) == hash(())


def kind_of_values(one: Any) -> tuple[Any, ...]:
    return tuple(getattr(one, name) for name, value in PARTS.items() if value.hash)


def test_a_field_without_a_default_cannot_follow_one_with_a_default() -> None:
    with pytest.raises(TypeError, match="non-default argument 'b' follows default argument"):
        method("__init__", {"a": part(1), "b": part()}, object, True)
    assert method("__init__", {"a": part(1), "b": part(kw_only=True)}, object, True)


def test_it_says_whose_it_is() -> None:
    made = method("__init__", PARTS, FieldPart, True)
    assert (made.__qualname__, made.__module__) == ("FieldPart.__init__", FieldPart.__module__)
