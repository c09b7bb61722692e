"""Schemas of OpenAPI 3.0 as JSON Schema of today."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from headgate.dialect.openapi.document import OpenApiError
from headgate.dialect.openapi.schemas import SchemaBudget, Unfolding


def unfolded(schema: Any, version: str = "3.0.3", **components: Any) -> Any:
    document = {"openapi": version, "components": {"schemas": components}}
    return Unfolding(document, SchemaBudget()).schema(schema, "here")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ({"type": "object", "xml": {}, "discriminator": {"propertyName": "a"}}, {"type": "object"}),
        ({"anyOf": [{"type": "string", "nullable": True}]}, {"anyOf": [{"type": ["string", "null"]}]}),
        ({"additionalProperties": {"$ref": "#/components/schemas/A"}}, {"additionalProperties": {"type": "integer"}}),
        ({"properties": {"nullable": {"type": "string"}}}, {"properties": {"nullable": {"type": "string"}}}),
        ({"$ref": "#/components/schemas/A", "description": "d"}, {"type": "integer", "description": "d"}),
        (True, True),
    ],
)
def test_old_keywords(schema: Any, expected: Any) -> None:
    found = unfolded(schema, A={"type": "integer"})
    assert found == expected
    jsonschema.Draft202012Validator.check_schema(found)


def test_values_are_not_taken_for_schemas() -> None:
    schema = {"default": {"$ref": "#/nope"}, "enum": [{"nullable": True}], "const": {"items": {"xml": 1}}}
    assert unfolded(schema) == schema


def test_newer_documents_keep_their_keywords() -> None:
    assert unfolded({"exclusiveMinimum": 1, "type": ["string", "null"]}, "3.1.0") == {
        "exclusiveMinimum": 1,
        "type": ["string", "null"],
    }


def test_there_is_an_end_to_what_is_unfolded() -> None:
    unfolding = Unfolding({"openapi": "3.0.0"}, SchemaBudget(3))
    with pytest.raises(OpenApiError, match="too large"):
        unfolding.schema({"allOf": [{}, {}, {}]}, "here")
