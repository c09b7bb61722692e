"""A lazy dataclass is one of the standard library's, whichever of its methods is called first."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError, field
from typing import ClassVar

import pytest

from headgate.document.lazy_dataclass import SHARED_CALLS, dataclass, field_names, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """With a default and a field that is not shown."""

    x: int
    y: int = 2
    secret: str = field(default="s", repr=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """The same fields."""

    x: int
    y: int = 2
    secret: str = field(default="s", repr=False)


@dataclass(slots=True)
class Bag:
    """A changeable one, with positions and a factory."""

    name: str
    items: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place(Point):
    """Has fields of its own beside those of its parent."""

    z: int = 3


def fresh() -> type:
    @dataclass(frozen=True, slots=True)
    class Once:
        """Nobody has used it."""

        value: int

    return Once


def many() -> type:
    @dataclass(frozen=True, slots=True)
    class Many:
        """Fields of all kinds."""

        kinds: ClassVar[int] = 3
        first: int
        items: Sequence[int] = field(default_factory=list, repr=False)
        fixed: int = field(default=7, init=False)
        late: int = field(kw_only=True)
        sum: int = field(init=False, compare=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "sum", self.first + self.fixed + Many.kinds)

    return Many


@pytest.mark.parametrize(
    "first",
    [
        lambda kind, one: kind(5),
        lambda kind, one: repr(one),
        lambda kind, one: one == kind(7),
        lambda kind, one: hash(one),
        lambda kind, one: dataclasses.replace(one, value=3),
    ],
    ids=["made", "shown", "compared", "hashed", "replaced"],
)
def test_any_method_may_be_the_first_that_is_called(first: Callable[[type, object], object]) -> None:
    kind = fresh()
    one = object.__new__(kind)
    object.__setattr__(one, "value", 7)
    first(kind, one)
    assert one == kind(7)
    assert hash(one) == hash(kind(7))
    assert repr(one).endswith("Once(value=7)")
    assert one != kind(8)


@pytest.mark.parametrize("calls", [1, SHARED_CALLS, SHARED_CALLS + 1])
def test_it_makes_what_the_standard_one_makes_however_often_it_is_called(calls: int) -> None:
    kind = many()
    for _ in range(calls):
        one = kind(1, late=4)
    assert dataclasses.astuple(one) == (1, [], 7, 4, 11)  # type: ignore[call-overload]
    assert one == kind(1, items=[], late=4) != kind(2, late=4)
    assert hash(kind(1, (), late=4)) == hash(kind(1, (), late=4))
    for call in (
        lambda: kind(),
        lambda: kind(1),
        lambda: kind(1, 2, 3, 4),
        lambda: kind(1, first=1, late=4),
        lambda: kind(1, late=4, fixed=1),
        lambda: kind(1, late=4, strange=1),
    ):
        with pytest.raises(TypeError):
            call()


def test_a_default_that_all_objects_would_share_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Shared:
        """Its list would be that of all."""

        items: list[int] = []

    with pytest.raises(ValueError, match="mutable default"):
        Shared()


def test_it_does_what_the_standard_one_does() -> None:
    mine, theirs = Point(x=1), Standard(x=1)
    assert repr(mine) == repr(theirs).replace("Standard", "Point")
    assert hash(mine) == hash(theirs)
    assert mine == Point(x=1, y=2) != Point(x=2)
    assert mine != theirs
    assert dataclasses.asdict(mine) == dataclasses.asdict(theirs)
    assert Point.__match_args__ == Standard.__match_args__ == ()
    assert dataclasses.is_dataclass(Point)
    assert dataclasses.replace(mine, y=4) == Point(x=1, y=4)
    assert not hasattr(mine, "__dict__")
    for call in (lambda: Point(1), lambda: Point(), lambda: Point(x=1, w=2)):  # type: ignore[call-arg,misc]
        with pytest.raises(TypeError):
            call()


def test_a_frozen_one_is_not_changed_and_travels() -> None:
    one = Place(x=1, z=5)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        one.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del one.x
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(one) == "Place(x=1, y=2, z=5)"


def test_a_changeable_one_has_a_list_of_its_own_and_no_hash() -> None:
    first, second = Bag("a"), Bag("a")
    first.items.append(1)
    assert (first.items, second.items) == ([1], [])
    assert first != second
    second.items = [1]
    assert first == second
    with pytest.raises(TypeError):
        hash(first)
    match first:
        case Bag(name, items):
            assert (name, items) == ("a", [1])


def test_its_own_methods_do_not_need_the_standard_library(monkeypatch: pytest.MonkeyPatch) -> None:
    # That takes up to 8 ms at once, in which a worker would serve nobody.
    for name in ("dataclass", "make_dataclass", "fields"):
        monkeypatch.setattr(dataclasses, name, lambda *_a, **_k: pytest.fail("a class was looked at"))
    kind = many()
    for _ in range(SHARED_CALLS + 1):
        assert kind(1, (), late=2) == kind(1, (), late=2)
        assert len({kind(1, (), late=2), kind(1, (), late=3)}) == 2
    for name in ("__init__", "__eq__", "__hash__"):
        assert vars(kind)[name].__qualname__.endswith(f"Many.{name}")


def test_no_signature_is_worked_out_for_a_docstring(monkeypatch: pytest.MonkeyPatch) -> None:
    # dataclasses does so for a class without one, which took a sixteenth of a start.
    monkeypatch.setattr(inspect, "signature", lambda *_: pytest.fail("a signature was asked for"))
    cls = fresh()
    assert [one.name for one in dataclasses.fields(cls)] == ["value"]
    assert [repr(cls(n)).endswith(f"(value={n})") for n in range(SHARED_CALLS + 2)] == [True] * (SHARED_CALLS + 2)
    assert cls.__doc__ == "Nobody has used it."


@pytest.mark.parametrize("make", [Point, Place, Standard])
def test_one_is_replaced_as_the_standard_library_does_it(make: Callable[..., Point]) -> None:
    one = make(x=1, secret="t")
    assert replace(one, y=4) == dataclasses.replace(one, y=4) == make(x=1, y=4, secret="t")
    assert replace(one) is not one
    with pytest.raises(TypeError):
        replace(one, strange=1)


def test_what_init_does_not_set_is_not_replaced() -> None:
    one = many()(1, late=4)
    assert replace(one, first=2).sum == 12
    with pytest.raises(ValueError, match="init=False"):
        replace(one, fixed=1)


def test_fields_are_named_and_replaced_without_the_standard_library(monkeypatch: pytest.MonkeyPatch) -> None:
    assert field_names(Standard) == ["x", "y", "secret"]
    monkeypatch.setattr(dataclasses, "dataclass", lambda **_: pytest.fail("a class was looked at"))
    kind = many()
    assert field_names(kind) == ["first", "items", "fixed", "late", "sum"]
    assert replace(kind(1, late=2), late=3).late == 3
    with pytest.raises(TypeError):
        field_names(int)
