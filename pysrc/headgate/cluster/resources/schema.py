"""The parts of a structural schema, as an API server wants them.

TARGET = record({"name": text(1, 253), "port": integer(1, 65_535)}, required=("name",), rules=(at_most_one("a", "b"),))

Every text, list and map has a limit: the API server multiplies the cost of a CEL rule with the limits around it, and
refuses a schema whose rules may cost too much.
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

Json = dict[str, Any]

# Words of CEL that a field's name cannot be.
RESERVED: Final = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip
ANYTHING: Final[Json] = {"x-kubernetes-preserve-unknown-fields": True}


def text(least: int, most: int, pattern: str = "", form: str = "") -> Json:
    """Return a string of `least`..`most` characters, with a regular expression and a format of JSON schema."""
    found: Json = {"type": "string", "maxLength": most}
    if least:
        found["minLength"] = least
    if pattern:
        found["pattern"] = pattern
    if form:
        found["format"] = form
    return found


def words(*allowed: str) -> Json:
    """Return a text that is one of the allowed words."""
    return {"type": "string", "enum": list(allowed)}


def integer(least: int, most: int) -> Json:
    """Return a whole number of `least`..`most`, in the smaller of the two formats that has room for both."""
    wide = most > 2**31 - 1 or least < -(2**31)
    found: Json = {"type": "integer", "format": "int64" if wide else "int32", "minimum": least, "maximum": most}
    # API servers read limits as floating point: the largest number would be one too many for its format.
    if most == 2**63 - 1:
        del found["maximum"]
    return found


def flag() -> Json:
    """Return true or false."""
    return {"type": "boolean"}


def listed(item: Json, least: int, most: int, *, key: str = "", unique: bool = False) -> Json:
    """Return a list of `least`..`most` items. `key`: no two items have the same value of this field. `unique`: no two
    items, which are no objects, are equal."""
    found: Json = {"type": "array", "items": item, "maxItems": most}
    if least:
        found["minItems"] = least
    if key:
        found["x-kubernetes-list-type"], found["x-kubernetes-list-map-keys"] = "map", [key]
    else:
        found["x-kubernetes-list-type"] = "set" if unique else "atomic"
    return found


def mapped(item: Json, most: int, least: int = 0) -> Json:
    """Return a map of free keys with `least`..`most` entries."""
    found: Json = {"type": "object", "additionalProperties": item, "maxProperties": most}
    if least:
        found["minProperties"] = least
    return found


def record(fields: Mapping[str, Json], *, required: Iterable[str] = (), rules: Iterable[Json] = ()) -> Json:
    """Return an object of known fields. Raises KeyError if a required field is not among them."""
    found: Json = {"type": "object"}
    if fields:
        found["properties"] = dict(fields)
    needed = list(required)
    for name in needed:
        fields[name]
    if needed:
        found["required"] = needed
    return ruled(found, *rules)


def nothing() -> Json:
    """Return an object without fields, written `{}`."""
    return {"type": "object"}


def free_form(most: int | None = None) -> Json:
    """Return an object of any content."""
    return {"type": "object", **({} if most is None else {"maxProperties": most}), **ANYTHING}


def described(schema: Json, words_: str) -> Json:
    """Return the schema with the sentence that `kubectl explain` shows."""
    return {"description": words_, **schema}


def default(schema: Json, value: Any) -> Json:
    """Return the schema with a value that the API server writes where none is given."""
    return {**schema, "default": value}


def rule(holds: str, message: str) -> Json:
    """Return a CEL rule about `self`, and what a user is told when it does not hold."""
    return {"rule": holds, "message": message}


def ruled(schema: Json, *rules: Json) -> Json:
    """Return the schema with rules added to those that it has."""
    both = [*schema.get("x-kubernetes-validations", ()), *rules]
    return {**schema, "x-kubernetes-validations": both} if both else schema


def field(name: str, of: str = "self") -> str:
    """Return a field as CEL selects it: names that CEL reserves are escaped."""
    return f"{of}.__{name}__" if name in RESERVED else f"{of}.{name}"


def has(name: str, of: str = "self") -> str:
    """Return the CEL expression that tells whether a field is there."""
    return f"has({field(name, of)})"


def _count(names: Iterable[str]) -> str:
    return f"[{', '.join(map(has, names))}].filter(x, x).size()"


def exactly_one(*names: str) -> Json:
    """Return the rule that one of the fields is there."""
    return rule(f"{_count(names)} == 1", f"exactly one of the fields in [{' '.join(names)}] must be set")


def at_most_one(*names: str) -> Json:
    """Return the rule that no two of the fields are there."""
    return rule(f"{_count(names)} <= 1", f"at most one of the fields in [{' '.join(names)}] may be set")


def at_least_one(*names: str) -> Json:
    """Return the rule that one or more of the fields are there."""
    return rule(f"{_count(names)} >= 1", f"at least one of the fields in [{' '.join(names)}] must be set")


def excludes(name: str, *others: str) -> Json:
    """Return the rule that a field stands alone: none of the others may be there with it."""
    several = " || ".join(map(has, others))
    return rule(f"!{has(name)} || !({several})", f"{name} may not be set together with {' or '.join(others)}")


def needs(name: str, other: str) -> Json:
    """Return the rule that a field is there only with another one."""
    return rule(f"!{has(name)} || {has(other)}", f"{name} needs {other}")
