"""JSON schemas of answers in the subset of Claude's vendors, at every pair that leads to it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llm_sdk_shapes import shape_faults
from llm_strict import schema_faults

from headgate.dialect.llm import pairs
from headgate.dialect.llm.closed_schemas import closed
from headgate.dialect.llm.contract import Options, Untranslatable
from headgate.dialect.llm.schemas import MAX_DEPTH

TEXT = {"type": "string"}
CLOSED = {"additionalProperties": False}
AT = "response_format.json_schema.schema"

# What a schema becomes, and whether that is told as a loss.
CASES: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("closed", {"type": "object", "properties": {"a": TEXT}, **CLOSED},
     {"type": "object", "properties": {"a": TEXT}, **CLOSED}, False),
    ("silent", {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}},
     {"type": "object", "properties": {"a": {"type": "object", "properties": {}, **CLOSED}}, **CLOSED}, False),
    ("open", {"type": "object", "additionalProperties": True}, {"type": "object", **CLOSED}, True),
    ("a map", {"type": ["object", "null"], "additionalProperties": TEXT}, {"type": ["object", "null"], **CLOSED}, True),
    ("without a type", {"properties": {"a": TEXT}}, {"properties": {"a": TEXT}, **CLOSED}, False),
    ("limits", {"type": "integer", "minimum": 1, "maximum": 5, "description": "stars"},
     {"type": "integer", "description": "stars\n\n{minimum: 1, maximum: 5}"}, True),
    ("pattern", {"type": "string", "pattern": '^"a"$'}, {"type": "string", "description": '{pattern: "^\\"a\\"$"}'}, True),
    ("examples", {"type": "string", "examples": ["x"]}, {"type": "string", "description": '{examples: ["x"]}'}, False),
    ("known format", {"type": "string", "format": "date"}, {"type": "string", "format": "date"}, False),
    ("other format", {"type": "string", "format": "iri"}, {"type": "string", "description": '{format: "iri"}'}, True),
    ("width", {"type": "integer", "format": "int64"}, {"type": "integer"}, False),
    ("few items", {"type": "array", "items": {"type": "object"}, "minItems": 1},
     {"type": "array", "items": {"type": "object", **CLOSED}, "minItems": 1}, False),
    ("many items", {"type": "array", "items": TEXT, "minItems": 2},
     {"type": "array", "items": TEXT, "description": "{minItems: 2}"}, True),
    ("references", {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "title": "A"}}, "$schema": "x"},
     {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "title": "A", **CLOSED}}}, False),
    ("one of", {"oneOf": [{"type": "object"}, TEXT]}, {"anyOf": [{"type": "object", **CLOSED}, TEXT]}, False),
    ("all of one", {"allOf": [{"$ref": "#/$defs/A"}], "description": "x", "$defs": {"A": TEXT}},
     {"anyOf": [{"$ref": "#/$defs/A"}], "description": "x", "$defs": {"A": TEXT}}, False),
    ("all of several", {"allOf": [{"type": "string"}, {"title": "A"}]}, {"allOf": [{"type": "string"}, {"title": "A"}]}, False),
    ("names of members", {"type": "object", "properties": {"minimum": TEXT, "format": TEXT}},
     {"type": "object", "properties": {"minimum": TEXT, "format": TEXT}, **CLOSED}, False),
]  # fmt: skip
OPEN = {"type": "object", "properties": {"stars": {"type": "integer", "minimum": 1}, "more": {"type": "object"}},
        "required": ["stars"]}  # fmt: skip


@pytest.mark.parametrize(("given", "made", "told"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_schema_is_what_the_vendor_takes(given: dict[str, Any], made: dict[str, Any], told: bool) -> None:
    before, dropped = json.dumps(given), list[str]()
    assert closed(given, AT, dropped) == made
    assert dropped == [AT] * told
    assert schema_faults(made) == []
    assert json.dumps(given) == before


def test_a_schema_may_not_be_too_deep() -> None:
    schema: dict[str, Any] = {}
    for _ in range(MAX_DEPTH + 1):
        schema = {"type": "array", "items": schema}
    with pytest.raises(Untranslatable, match="too deep or too large"):
        closed(schema, AT, [])


def wanting(client: str, schema: dict[str, Any] | None) -> dict[str, Any]:
    """Return a request for JSON, of a schema or of any."""
    if client == "gemini":
        form: dict[str, Any] = {"responseMimeType": "application/json"}
        form |= {} if schema is None else {"responseJsonSchema": schema}
        return {"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": form}
    named: dict[str, Any] = {} if schema is None else {"name": "n", "schema": schema}
    kind = "json_object" if schema is None else "json_schema"
    if client == "responses":
        return {"input": "hi", "text": {"format": {"type": kind, **named}}}
    form = {"type": kind} if schema is None else {"type": kind, "json_schema": named}
    return {"messages": [{"role": "user", "content": "hi"}], "response_format": form}


def sent_schema(upstream: str, body: dict[str, Any]) -> Any:
    if upstream == "messages":
        return body.get("output_config", {}).get("format", {}).get("schema")
    told = body.get("outputConfig", {}).get("textFormat", {}).get("structure", {}).get("jsonSchema", {}).get("schema")
    return None if told is None else json.loads(told)


TOLD = {
    "completions": ("response_format", AT),
    "responses": ("text.format", "text.format.schema"),
    "gemini": ("generationConfig.responseMimeType", "generationConfig.responseSchema"),
}


@pytest.mark.parametrize("upstream", ["messages", "converse"])
@pytest.mark.parametrize("client", list(TOLD))
def test_clients_get_answers_of_their_schemas_from_claude(client: str, upstream: str) -> None:
    pair = pairs.converter(client, upstream)
    assert pair is not None
    asked = pair.request(wanting(client, OPEN), Options(model="claude-sonnet-4-5"))
    schema = sent_schema(upstream, asked.body)
    assert schema_faults(schema) == []
    assert schema["properties"]["more"] == {"type": "object", **CLOSED}
    assert TOLD[client][1] in asked.dropped
    anything = pair.request(wanting(client, None), Options(model="claude-sonnet-4-5"))
    assert sent_schema(upstream, anything.body) is None
    assert TOLD[client][0] in anything.dropped


PERSON = {"type": "object", "properties": {"a": TEXT}, "required": ["a"], **CLOSED}
SAID = "what is known of a person"


@pytest.mark.parametrize("upstream", ["completions", "responses", "messages", "gemini"])
@pytest.mark.parametrize("name", ["person", "a person"])
def test_what_converse_says_of_an_answer_s_schema_is_said_elsewhere(upstream: str, name: str) -> None:
    told = {"schema": json.dumps(PERSON), "name": name, "description": SAID}
    body = {"messages": [{"role": "user", "content": [{"text": "hi"}]}],
            "outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": told}}}}  # fmt: skip
    asked = pairs.PAIRS["converse", upstream].request(body, Options(model="m-1"))
    assert shape_faults(upstream, asked.body) == []
    assert not asked.dropped
    if upstream == "messages":
        assert asked.body["output_config"]["format"] == {"type": "json_schema", "schema": {**PERSON, "description": SAID}}
    elif upstream == "gemini":
        assert asked.body["generationConfig"]["responseSchema"]["description"] == SAID
    else:
        form = asked.body["response_format"]["json_schema"] if upstream == "completions" else asked.body["text"]["format"]
        # OpenAI takes no spaces in names.
        assert (form["name"], form["description"]) == ("person" if name == "person" else "structured_output", SAID)
        assert form["schema"] == PERSON


@pytest.mark.parametrize("client", ["completions", "responses"])
@pytest.mark.parametrize("own", [None, "its own words"])
def test_what_openai_s_clients_say_of_a_schema_reaches_claude(client: str, own: str | None) -> None:
    schema = PERSON if own is None else {**PERSON, "description": own}
    named = {"name": "person", "description": SAID, "schema": schema}
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}], "response_format": {"type": "json_schema", "json_schema": named}}
    if client == "responses":
        body = {"input": "hi", "text": {"format": {"type": "json_schema", **named}}}
    asked = pairs.PAIRS[client, "messages"].request(body, Options(model="claude-sonnet-4-5"))
    assert asked.body["output_config"]["format"]["schema"] == {**PERSON, "description": own or SAID}
    found = pairs.PAIRS[client, "converse"].request(body, Options(model="claude-sonnet-4-5"))
    form = found.body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
    assert (form["name"], form["description"]) == ("person", SAID)
