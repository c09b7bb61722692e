"""What the definitions of our kinds refuse of an object, as far as it can be known without an API server.

Lengths, numbers, words and patterns are looked at; rules in CEL are not. https://json-schema.org/draft-04/schema
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from headgate.cluster.resources.kinds import KINDS
from headgate.cluster.resources.schema import Json

_SPECS: Final = {one.name: one.spec for one in KINDS}
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "object": (dict,),
    "array": (list,),
}  # fmt: skip
_SIZES: Final = (("minLength", "maxLength"), ("minItems", "maxItems"), ("minProperties", "maxProperties"))


def unfit(documents: Iterable[Json]) -> Iterator[tuple[Json, str]]:
    """Yield each object with a fault, with its place there and what is wrong."""
    for one in documents:
        schema = _SPECS.get(one["kind"])
        if schema is not None:
            for path, fault in _faults(schema, one["spec"], "spec"):
                yield one, f"{path} {fault}"


def _faults(schema: Json, value: Any, path: str) -> Iterator[tuple[str, str]]:
    wanted = schema.get("type")
    if wanted is not None and type(value) not in _TYPES[wanted]:
        yield path, f"must be of type {wanted}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield path, f"must be one of {', '.join(schema['enum'])}"
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        yield path, f"must match {schema['pattern']}"
    if type(value) in (int, float) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield path, f"must be {schema.get('minimum', '')}..{schema.get('maximum', '')}"
    if isinstance(value, str | list | dict):
        yield from _size(schema, value, path)
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from _faults(schema.get("items", {}), one, f"{path}[{index}]")
    elif isinstance(value, dict):
        yield from _fields(schema, value, path)


def _size(schema: Json, value: str | list[Any] | dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for least, most in _SIZES:
        if len(value) < schema.get(least, 0) or len(value) > schema.get(most, len(value)):
            allowed = f"{schema.get(least, 0)}..{schema.get(most, '')}"
            yield path, f"has {len(value)} entries or characters, where {allowed} are allowed"


def _fields(schema: Json, value: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield path, f"{name} is required"
    for name, one in value.items():
        if name in known:
            yield from _faults(known[name], one, f"{path}.{name}")
        elif "additionalProperties" in schema:
            yield from _faults(schema["additionalProperties"], one, f"{path}.{name}")
        elif not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{path}.{name}", "there is no such field"
