"""The building blocks of the shape of the file.

A shape says what a value may look like; `check` reads documents with it and `schema` prints it as JSON
schema.

TIMEOUT = Object("Timeout", {"requestTimeout": maybe(DURATION), "backendRequestTimeout": maybe(DURATION)})

`required(x)` must be there, `optional(x)` may be left out, `maybe(x)` may also be null (which means left
out), and `later(field)` is known but not built yet: it is read and checked, then refused, unless its value
changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from headgate.document.lazy_dataclass import dataclass, replace


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text, number or bool. `parse` turns the plain value into what is used and raises ValueError.

    `types` are the Python types of the node's value; `facets` go into the JSON schema; a `secret` is never
    quoted. `secret_lines`: it is one where it has several lines. `open_start`: it is none where it begins so.
    """

    name: str
    types: tuple[type, ...]
    parse: Callable[[Any], Any] | None = None
    facets: Mapping[str, Any] = field(default_factory=dict)
    secret: bool = False
    secret_lines: bool = False
    open_start: str = ""


@dataclass(frozen=True, slots=True)
class WordChoice:
    """One of several words, accepted in camelCase and PascalCase. The value is the word as in `words`, or the target of
    its alias. `later`: words that are not built yet."""

    name: str
    words: tuple[str, ...]
    later: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)

    def spellings(self) -> dict[str, str]:
        """Return every accepted spelling with its word."""
        found = {word: word for word in self.words} | dict(self.aliases)
        for spelled, word in list(found.items()):
            for other in (spelled[:1].upper() + spelled[1:], spelled[:1].lower() + spelled[1:]):
                if not spelled.isupper() and spelled.isalnum():
                    found.setdefault(other, word)
        return found


@dataclass(frozen=True, slots=True)
class Anything:
    """Any JSON value, kept as it is."""

    name: str = "Anything"


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; `least` and `most` bound its length."""

    item: Shape
    least: int = 0
    most: int | None = None
    unique: bool = False


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map with free keys; `key` checks a key and may rewrite it."""

    item: Shape
    key: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class ObjectField:
    """An entry of an object. `unless` are values (JSON form) that a `later` field may have because they
    change nothing.
    """

    shape: Shape
    required: bool = False
    nullable: bool = False
    later: bool = False
    unless: tuple[Any, ...] = ()
    deprecated: bool = False


@dataclass(frozen=True, slots=True)
class Object:
    """A closed map. Of the keys in `one_of` exactly one must be there (at most one when `one_of_optional`);
    of those in `any_of` at least one; of each pair in `apart` at most one. `aliases` maps other
    spellings of keys, `removed` keys of old to what took their place. `needed`: the keys of required fields; `ruled`:
    which keys there are is not all the same.
    """

    name: str
    fields: Mapping[str, ObjectField]
    one_of: tuple[str, ...] = ()
    one_of_optional: bool = False
    any_of: tuple[str, ...] = ()
    apart: tuple[tuple[str, str], ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    needed: tuple[str, ...] = field(init=False, compare=False)
    ruled: bool = field(init=False, compare=False)

    def __post_init__(self) -> None:
        needed = tuple(key for key, one in self.fields.items() if one.required)
        object.__setattr__(self, "needed", needed)
        object.__setattr__(self, "ruled", bool(needed or self.one_of or self.any_of or self.apart))


@dataclass(frozen=True, slots=True)
class Case:
    """A case of a union, taken when a map has one of the keys `has`, or `key` with the text `value`."""

    shape: Shape
    has: tuple[str, ...] = ()
    key: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Union:
    """Cases told apart by kind of value; among maps the first whose key is there, else the last map."""

    name: str
    cases: tuple[Shape | Case, ...]


@dataclass(frozen=True, slots=True)
class Ref:
    """A forward reference to a shape, for tables that refer to each other."""

    target: Callable[[], Shape]


Shape = Scalar | WordChoice | Anything | ListOf | MapOf | Object | Union | Ref


def required(shape: Shape) -> ObjectField:
    """Return a field that must be there."""
    return ObjectField(shape, required=True)


def optional(shape: Shape) -> ObjectField:
    """Return a field that may be left out."""
    return ObjectField(shape)


def maybe(shape: Shape) -> ObjectField:
    """Return a field that may be left out or null."""
    return ObjectField(shape, nullable=True)


def later(entry: ObjectField, *unless: Any) -> ObjectField:
    """Mark a field as not built yet. A value in `unless` (such as an empty list) counts as left out."""
    return replace(entry, later=True, unless=unless)


def deprecated(entry: ObjectField) -> ObjectField:
    """Mark a field as one that is still read, and that the schema calls deprecated."""
    return replace(entry, deprecated=True)


def extend(name: str, shape: Object, fields: Mapping[str, ObjectField]) -> Object:
    """Return `shape` under another name with more fields."""
    return replace(shape, name=name, fields={**fields, **shape.fields})
