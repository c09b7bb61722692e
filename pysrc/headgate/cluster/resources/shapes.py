"""Schemas of resources from the tables of the file: what both have is said once.

words_of(FAIL)                        the words of an enum, in the spelling of resources: FailOpen, FailClosed
like(PROCESSING_OPTIONS, limits...)   an object of the file with the fields that it has there
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headgate.cluster.resources import schema
from headgate.cluster.resources.schema import Json
from headgate.config.shape.vocabulary import (
    Anything,
    ListOf,
    MapOf,
    Object,
    Ref,
    Scalar,
    Shape,
    Union,
    WordChoice,
)

# Limits of what has none in the file.
MOST_ITEMS: Final = 64
MOST_ENTRIES: Final = 64
MOST_CHARACTERS: Final = 1_024

# Words of the file that resources spell in another way than with a capital first letter.
SPELLED: Final = {
    "grpc": "GRPC", "http": "HTTP", "HTTP/1.1": "HTTP1", "HTTP/2": "HTTP2", "TLS_V1_2": "1.2", "TLS_V1_3": "1.3",
}  # fmt: skip


def spelled(word: str) -> str:
    """Return a word of the file as resources spell it: `failOpen` is `FailOpen`, `HTTP/2` is `HTTP2`, `P-256` stays."""
    if word in SPELLED:
        return SPELLED[word]
    return word[:1].upper() + word[1:] if word.isalnum() else word


def words_of(choice: WordChoice, *, without: tuple[str, ...] = ()) -> Json:
    """Return the words of an enum of the file. Raises ValueError if one of `without` is not among them."""
    if unknown := set(without) - set(choice.words):
        raise ValueError(f"{choice.name} has no {', '.join(sorted(unknown))}")
    return schema.words(*(spelled(word) for word in choice.words if word not in without))


def of(shape: Shape) -> Json:
    """Return the schema of a shape; raises ValueError for a union, which structural schemas cannot have."""
    match shape:
        case Ref():
            return of(shape.target())
        case Scalar():
            return _scalar(shape)
        case WordChoice():
            return words_of(shape)
        case Anything():
            return dict(schema.ANYTHING)
        case ListOf():
            return schema.listed(of(shape.item), shape.least, shape.most or MOST_ITEMS, unique=shape.unique)
        case MapOf():
            return schema.mapped(of(shape.item), MOST_ENTRIES)
        case Object():
            return like(shape)
        case Union():
            raise ValueError(f"{shape.name} is a union")


def like(shape: Object, fields: Mapping[str, Json] | None = None, *, without: tuple[str, ...] = ()) -> Json:
    """Return the schema of an object of the file, with its rules. `fields` say some of its fields in another way;
    `without` are left out. Raises ValueError if one of these is no field of the object."""
    given = fields or {}
    if unknown := {*given, *without} - shape.fields.keys():
        raise ValueError(f"{shape.name} has no {', '.join(sorted(unknown))}")
    kept = {name: entry for name, entry in shape.fields.items() if name not in without}
    rules = []
    if shape.one_of:
        single = schema.at_most_one if shape.one_of_optional else schema.exactly_one
        rules.append(single(*(name for name in shape.one_of if name in kept)))
    if shape.any_of:
        rules.append(schema.at_least_one(*(name for name in shape.any_of if name in kept)))
    rules += [schema.at_most_one(*pair) for pair in shape.apart if kept.keys() >= {*pair}]
    found = {name: given[name] if name in given else of(entry.shape) for name, entry in kept.items()}
    needed = [name for name, entry in kept.items() if entry.required]
    return schema.record(found, required=needed, rules=rules)


def entry(shape: Object, name: str) -> Shape:
    """Return the shape of a field of the file."""
    return shape.fields[name].shape


def _scalar(shape: Scalar) -> Json:
    facets: dict[str, Any] = dict(shape.facets)
    if shape.types == (int,):
        return schema.integer(facets["minimum"], facets["maximum"])
    if shape.types == (bool,):
        return schema.flag()
    if shape.types == (str,):
        least, most = facets.get("minLength", 1), facets.get("maxLength", MOST_CHARACTERS)
        return schema.text(least, most, facets.get("pattern", ""))
    raise ValueError(f"{shape.name} is of several types")
