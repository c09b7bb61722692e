"""Compiles one method of a dataclass from its fields; it does what that of the standard library does.

The standard library makes all methods of a class at once, and an object for each field. For a class of 30 fields this
takes 3 to 8 ms, during which a worker serves nobody. One method takes less than 1 ms.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

# Names of what a compiled `__init__` refers to; a field with such a name would not be what is meant.
_OWN: Final = "_of_dataclass_"


class FieldPart(NamedTuple):
    """What the methods need to know of a field."""

    default: Any
    factory: Any
    init: bool
    compare: bool
    hash: bool
    kw_only: bool


class _Missing:
    """Stands for an argument that was not given, where a factory makes the value."""


def method(name: str, parts: Mapping[str, FieldPart], owner: type, frozen: bool) -> Callable[..., Any]:
    """Return `__init__`, `__eq__` or `__hash__` of a class with these fields. Raises TypeError for a field without a
    default after one that has one.
    """
    names: dict[str, Any] = {"__name__": owner.__module__}
    source = _WRITERS[name](parts, names, frozen, hasattr(owner, "__post_init__"))
    exec(source, names)  # noqa: S102 - names of fields, from our own classes
    made: Callable[..., Any] = names[name]
    made.__qualname__ = f"{owner.__qualname__}.{name}"
    return made


def _init(parts: Mapping[str, FieldPart], names: dict[str, Any], frozen: bool, checked: bool) -> str:
    names |= {f"{_OWN}put": object.__setattr__, f"{_OWN}missing": _Missing}
    arguments, body = ["self"], list[str]()
    only_named: list[str] = []
    has_default = False
    for name, part in parts.items():
        value = name
        if part.factory is not dataclasses.MISSING:
            names[f"{_OWN}make_{name}"] = part.factory
            value = f"{_OWN}make_{name}()"
            if part.init:
                value = f"{value} if {name} is {_OWN}missing else {name}"
        elif part.default is not dataclasses.MISSING:
            names[f"{_OWN}default_{name}"] = part.default
            value = name if part.init else f"{_OWN}default_{name}"
        elif not part.init:
            continue
        body.append(f"{_OWN}put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
        if part.init:
            argument = _argument(name, part)
            if not part.kw_only:
                if argument == name and has_default:
                    raise TypeError(f"non-default argument {name!r} follows default argument")
                has_default = has_default or argument != name
            (only_named if part.kw_only else arguments).append(argument)
    if only_named:
        arguments += ["*", *only_named]
    if checked:
        body.append("self.__post_init__()")
    return _function("__init__", arguments, body or ["pass"])


def _argument(name: str, part: FieldPart) -> str:
    if part.factory is not dataclasses.MISSING:
        return f"{name}={_OWN}missing"
    return name if part.default is dataclasses.MISSING else f"{name}={_OWN}default_{name}"


def _eq(parts: Mapping[str, FieldPart], _names: dict[str, Any], _frozen: bool, _checked: bool) -> str:
    mine, theirs = (_values(parts, one, lambda part: part.compare) for one in ("self", "other"))
    return _function(
        "__eq__", ["self", "other"],
        ["if other.__class__ is not self.__class__:", "    return NotImplemented", f"return {mine} == {theirs}"],
    )  # fmt: skip


def _hash(parts: Mapping[str, FieldPart], _names: dict[str, Any], _frozen: bool, _checked: bool) -> str:
    return _function("__hash__", ["self"], [f"return hash({_values(parts, 'self', lambda part: part.hash)})"])


def _values(parts: Mapping[str, FieldPart], owner: str, wanted: Callable[[FieldPart], bool]) -> str:
    return f"({''.join(f'{owner}.{name}, ' for name, part in parts.items() if wanted(part))})"


def _function(name: str, arguments: list[str], body: list[str]) -> str:
    return f"def {name}({', '.join(arguments)}):\n" + "".join(f"    {line}\n" for line in body)


_WRITERS: Final = {"__init__": _init, "__eq__": _eq, "__hash__": _hash}
