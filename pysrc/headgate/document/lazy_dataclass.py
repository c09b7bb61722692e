"""Dataclasses whose methods are generated when they are first called.

The standard decorator compiles six methods for every class when its module is imported. This takes a quarter of the
start time, although a start creates objects of few of these classes. This decorator only collects the fields and
creates the slots at import. `dataclasses.fields`, `replace` and `is_dataclass`, pickle and `match` work as usual.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

METHODS: Final = ("__init__", "__repr__", "__eq__")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, kw_only: bool = False
    ) -> Any:
        """Decorate a class as `dataclasses.dataclass` does, with the same meaning of the parameters."""

        def made(plain: type) -> type:
            return _lazy(plain, frozen, slots, kw_only)

        return made if cls is None else made(cls)


def _lazy(plain: type, frozen: bool, slots: bool, kw_only: bool) -> type:
    own = vars(plain)
    cls: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(plain)
    names = [name for name in METHODS if name not in own]
    if frozen and "__hash__" not in own:
        names.append("__hash__")
    elif not frozen and "__eq__" not in own:
        cls.__hash__ = None
    for name in names:
        setattr(cls, name, _later(cls, name, names, frozen))
    if frozen:
        cls.__setattr__ = _refuse_to_set
        cls.__delattr__ = _refuse_to_delete
        if slots:
            cls.__getstate__ = _state
            cls.__setstate__ = _set_state
    made: type = cls
    return made


def _later(cls: type, name: str, names: list[str], frozen: bool) -> Callable[..., Any]:
    """Return a placeholder for a method. When called, it generates all methods and calls the one that replaces it."""

    def method(self: object, *args: Any, **kwargs: Any) -> Any:
        _generate(cls, names, frozen)
        return getattr(cls, name)(self, *args, **kwargs)

    method.__name__ = name
    return method


def _generate(cls: type, names: list[str], frozen: bool) -> None:
    """Generate the methods with the standard decorator on a twin with the same fields, and copy them to the class."""
    specification = [
        (
            one.name,
            one.type,
            dataclasses.field(
                default=one.default, default_factory=one.default_factory, init=one.init, repr=one.repr, hash=one.hash,
                compare=one.compare, kw_only=one.kw_only,
            ),
        )
        for one in dataclasses.fields(cls)
    ]  # fmt: skip
    # __init__ calls __post_init__ if the class has one.
    rest = {"__post_init__": cls.__post_init__} if hasattr(cls, "__post_init__") else {}
    twin = dataclasses.make_dataclass(cls.__name__, specification, frozen=frozen, namespace=rest)
    for name in names:
        method = getattr(twin, name)
        method.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, method)


def _refuse_to_set(self: object, name: str, _value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(one.name for one in dataclasses.fields(cls))


def _state(self: Any) -> list[object]:
    return [getattr(self, name) for name in _names(type(self))]  # type: ignore[arg-type]


def _set_state(self: Any, values: list[object]) -> None:
    for name, value in zip(_names(type(self)), values, strict=True):  # type: ignore[arg-type]
        object.__setattr__(self, name, value)
