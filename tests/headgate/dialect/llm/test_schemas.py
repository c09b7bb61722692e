"""JSON schemas in Google's subset."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.dialect.llm.contract import Untranslatable
from headgate.dialect.llm.schemas import MAX_DEPTH, normalise

TEXT = {"type": "string"}

CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("defs", {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": TEXT}},
     {"type": "object", "properties": {"a": TEXT}}),
    ("definitions", {"$ref": "#/definitions/A", "description": "d", "definitions": {"A": TEXT}},
     {"type": "string", "description": "d"}),
    ("escaped reference", {"$ref": "#/$defs/a~1b~0c", "$defs": {"a/b~c": TEXT}}, TEXT),
    ("recursion", {"$ref": "#/$defs/T", "$defs": {"T": {"type": "object", "properties": {"n": {"$ref": "#/$defs/T"}}}}},
     {"type": "object", "properties": {"n": {"type": "object"}}}),
    ("allOf", {"allOf": [{"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
                         {"properties": {"b": TEXT}, "required": ["b"]}], "description": "d"},
     {"type": "object", "description": "d", "required": ["a", "b"], "properties": {"b": TEXT, "a": TEXT}}),
    ("allOf of references", {"allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": TEXT}}, TEXT),
    ("const", {"const": "x"}, {"type": "string", "enum": ["x"]}),
    ("const number", {"type": "integer", "const": 3}, {"type": "integer"}),
    ("enum without type", {"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
    ("enum of numbers", {"type": "integer", "enum": [1, 2]}, {"type": "integer"}),
    ("enum with null", {"enum": ["a", None]}, {"type": "string", "enum": ["a"], "nullable": True}),
    ("nullable", {"type": ["string", "null"]}, {"type": "string", "nullable": True}),
    ("several types", {"type": ["string", "integer", "null"], "description": "d"},
     {"anyOf": [TEXT, {"type": "integer"}], "nullable": True, "description": "d"}),
    ("anyOf with null", {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]},
     {"type": "string", "minLength": 1, "nullable": True}),
    ("oneOf", {"oneOf": [TEXT, {"type": "integer"}]}, {"anyOf": [TEXT, {"type": "integer"}]}),
    ("formats", {"type": "string", "format": "uri"}, TEXT),
    ("known formats", {"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
    ("array without items", {"type": "array"}, {"type": "array", "items": TEXT}),
    ("tuple", {"type": "array", "prefixItems": [{"type": "integer"}]}, {"type": "array", "items": {"type": "integer"}}),
    ("additionalProperties", {"type": "object", "additionalProperties": {"type": "string"}}, {"type": "object"}),
    ("missing type", {"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
    ("required of nothing", {"type": "object", "properties": {"a": TEXT}, "required": ["a", "z"]},
     {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}),
    ("unlisted keywords", {"type": "string", "$comment": "x", "if": {}, "not": {}}, TEXT),
    ("property named like a keyword", {"type": "object", "properties": {"format": TEXT, "$ref": TEXT}},
     {"type": "object", "properties": {"format": TEXT, "$ref": TEXT}}),
    ("true", {"type": "object", "properties": {"a": True}}, {"type": "object", "properties": {"a": {}}}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_schema_becomes_googles(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert normalise(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/none"},
        {"$ref": "https://elsewhere/schema"},
        {"allOf": [{"$ref": "#/$defs/none"}]},
    ],
)
def test_references_to_nothing_are_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(Untranslatable, match="refers to"):
        normalise(schema)


def test_schemas_that_grow_without_end_are_refused() -> None:
    wide: dict[str, Any] = {"T0": TEXT}
    for level in range(1, 30):
        below = {"$ref": f"#/$defs/T{level - 1}"}
        wide[f"T{level}"] = {"type": "object", "properties": {"a": below, "b": below}}
    with pytest.raises(Untranslatable, match="too large"):
        normalise({"$ref": "#/$defs/T29", "$defs": wide})
    deep: dict[str, Any] = {}
    for _ in range(MAX_DEPTH + 1):
        deep = {"type": "object", "properties": {"a": deep}}
    with pytest.raises(Untranslatable, match="too deep"):
        normalise(deep)


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"$ref": "#"}]},
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
        {"allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}}},
        {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        {"type": "object", "properties": [], "required": "x", "enum": {}},
        {"allOf": [3], "anyOf": 3, "type": 3, "items": 3},
        {"type": [], "prefixItems": 3},
        {"type": ["null"]},
    ],
)
def test_odd_schemas_end(schema: dict[str, Any]) -> None:
    try:
        normalise(schema)
    except Untranslatable:
        return
