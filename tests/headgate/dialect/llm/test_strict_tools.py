"""Strict tools of OpenAI's clients at Claude and at Bedrock, within what the vendors take."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llm_sdk_shapes import shape_faults
from llm_strict import schema_faults

from headgate.dialect.llm import pairs
from headgate.dialect.llm.contract import Options
from headgate.dialect.llm.schemas import MAX_NODES
from headgate.dialect.llm.strict_tools import (
    MOST_OPTIONAL,
    MOST_TOOLS,
    MOST_UNIONS,
    StrictTools,
    is_refused,
    openai_takes,
    takes,
)

Json = dict[str, Any]
SCHEMA = {"type": "object", "properties": {"at": {"type": "string", "pattern": "^a"}, "n": {"type": "integer", "minimum": 1}},
          "required": ["at", "n"], "additionalProperties": False}  # fmt: skip
PATHS = {"completions": "tools[].function", "responses": "tools[]", "messages": "tools[]", "converse": "toolConfig.tools[].toolSpec"}
CLAUDE, OLDER = "claude-sonnet-4-5", "claude-opus-4-1"


def asking(client: str, strict: bool, schema: Json) -> Json:
    """Return a request with one tool."""
    tool: Json = {"name": "look", "parameters": schema, "strict": strict}
    if client == "completions":
        return {"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function", "function": tool}]}
    if client == "responses":
        return {"input": "hi", "tools": [{"type": "function", **tool}]}
    if client == "messages":
        return {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}],
                "tools": [{"name": "look", "input_schema": schema, "strict": strict}]}  # fmt: skip
    spec = {"name": "look", "inputSchema": {"json": schema}, "strict": strict}
    return {"messages": [{"role": "user", "content": [{"text": "hi"}]}], "toolConfig": {"tools": [{"toolSpec": spec}]}}


def sent(upstream: str, body: Json) -> tuple[bool, Json]:
    """Return whether the tool is strict, and its schema."""
    if upstream == "messages":
        [tool] = body["tools"]
        return tool.get("strict", False), tool["input_schema"]
    [spec] = body["toolConfig"]["tools"]
    return spec["toolSpec"].get("strict", False), spec["toolSpec"]["inputSchema"]["json"]


WAYS = [(client, upstream) for client in PATHS for upstream in ("messages", "converse") if (client, upstream) in pairs.PAIRS]


@pytest.mark.parametrize(("client", "upstream"), WAYS)
def test_strict_tools_reach_the_vendors_that_have_them(client: str, upstream: str) -> None:
    pair = pairs.PAIRS[client, upstream]
    vendor = "aws.bedrock" if upstream == "converse" else "anthropic"
    asked = pair.request(asking(client, True, SCHEMA), Options(model=CLAUDE, vendor=vendor))
    strict, schema = sent(upstream, asked.body)
    assert strict is True
    assert f"{PATHS[client]}.strict" not in asked.dropped
    assert shape_faults(upstream, asked.body) == []
    if client in ("completions", "responses"):
        # The vendor refuses limits of values: they are described, and told.
        assert schema_faults(schema) == []
        assert schema["properties"]["at"]["description"] == '{pattern: "^a"}'
        assert f"{PATHS[client]}.parameters" in [*asked.dropped, *(name.replace("[0]", "[]") for name in asked.dropped)]
    before = pair.request(asking(client, True, SCHEMA), Options(model=OLDER, vendor=vendor))
    strict, schema = sent(upstream, before.body)
    assert strict is False
    assert schema == SCHEMA
    assert f"{PATHS[client]}.strict" in [name.replace("[0]", "[]") for name in before.dropped]
    plain = pair.request(asking(client, False, SCHEMA), Options(model=CLAUDE, vendor=vendor))
    assert sent(upstream, plain.body) == (False, SCHEMA)
    assert not plain.dropped


@pytest.mark.parametrize(
    ("model", "vendor", "taken"),
    [(CLAUDE, "anthropic", True), (CLAUDE, "gcp.vertex_ai", False), (OLDER, "anthropic", False), ("alias", "anthropic", True),
     ("us.anthropic.claude-haiku-4-5-v1:0", "aws.bedrock", True), ("amazon.nova-pro-v1:0", "aws.bedrock", False),
     ("qwen.qwen3-32b-v1:0", "aws.bedrock", True), ("arn:aws:bedrock:us-east-1:1:application-inference-profile/x", "aws.bedrock", False)],
)  # fmt: skip
def test_who_takes_them(model: str, vendor: str, taken: bool) -> None:
    assert takes(model, vendor) == taken


def members(count: int, kind: Any = "string", needed: bool = True) -> Json:
    names = [f"a{at}" for at in range(count)]
    return {"type": "object", "properties": {name: {"type": kind} for name in names}, "required": names if needed else []}


@pytest.mark.parametrize(
    ("schemas", "strict"),
    [([members(1)] * (MOST_TOOLS + 1), MOST_TOOLS), ([members(MOST_OPTIONAL, needed=False), members(1, needed=False), members(1)], 2),
     ([members(MOST_UNIONS, ["string", "null"]), members(1, ["string", "null"])], 1),
     ([{"type": "object", "properties": {"a": {"type": "array", "items": members(MOST_OPTIONAL, needed=False)}}}], 0),
     ([{"$defs": {"A": members(MOST_OPTIONAL + 1, needed=False)}}], 0)],
    ids=["tools", "optional members", "unions", "within lists", "definitions"],
)  # fmt: skip
def test_what_is_beyond_the_vendor_s_limits_is_told(schemas: list[Json], strict: int) -> None:
    dropped: list[str] = []
    work = StrictTools(CLAUDE, "anthropic", dropped)
    made = [work.schema(schema, f"tools[{at}].function.strict") for at, schema in enumerate(schemas)]
    assert len([one for one in made if one is not None]) == strict
    assert dropped == [f"tools[{at}].function.strict" for at, one in enumerate(made) if one is None]


NODE = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["next"]}
LEAF = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def with_definitions(at: Json, **named: Json) -> Json:
    return {"type": "object", "properties": {"at": at}, "required": ["at"], "$defs": named}


@pytest.mark.parametrize(
    ("schema", "refused"),
    [
        (with_definitions({"$ref": "#/$defs/node"}, node=NODE), True),
        (with_definitions({"$ref": "#"}), True),
        (with_definitions({"$ref": "#/properties/at"}), True),
        (with_definitions({"$ref": "#/$defs/a"}, a={"items": {"$ref": "#/$defs/b"}}, b={"items": {"$ref": "#/$defs/a"}}), True),
        (with_definitions({"$ref": "#/$defs/nobody"}), True),
        (with_definitions({"$ref": "https://example.com/schema.json"}), True),
        (with_definitions({"enum": [{"a": 1}, "x"]}), True),
        (with_definitions({"allOf": [{"$ref": "#/$defs/leaf"}, {"type": "object"}]}, leaf=LEAF), True),
        (with_definitions({"items": [{"type": "string"}] * MAX_NODES}), True),
        (with_definitions({"allOf": [{"$ref": "#/$defs/leaf"}]}, leaf=LEAF), False),
        (with_definitions({"$ref": "#/$defs/a~1b"}, **{"a/b": LEAF}), False),
        (with_definitions({"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/leaf"}]}, a={"items": {"$ref": "#/$defs/leaf"}},
                          leaf=LEAF), False),
        (with_definitions({"enum": ["a", 1, None, True]}), False),
        (with_definitions({"type": "object", "properties": {"enum": {"type": "string"}, "$ref": {"type": "string"}}}), False),
    ],
    ids=["node", "root", "itself", "two", "nobody", "elsewhere", "values", "all of", "large", "one of all", "escaped", "shared",
         "plain", "names"],
)  # fmt: skip
def test_schemas_that_no_claude_takes_go_without(schema: Json, refused: bool) -> None:
    assert is_refused(schema) == refused
    dropped: list[str] = []
    made = StrictTools(CLAUDE, "anthropic", dropped).schema(schema, "tools[0].function.strict")
    assert (made is None) == refused
    assert dropped == (["tools[0].function.strict"] if refused else [])


@pytest.mark.parametrize("client", ["completions", "responses"])
def test_the_schema_of_the_answer_counts_as_well(client: str) -> None:
    answer = members(MOST_OPTIONAL, needed=False)
    body = asking(client, True, members(1, needed=False))
    if client == "completions":
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "told", "schema": answer}}
    else:
        body["text"] = {"format": {"type": "json_schema", "name": "told", "schema": answer}}
    asked = pairs.PAIRS[client, "messages"].request(body, Options(model=CLAUDE, vendor="anthropic"))
    assert sent("messages", asked.body)[0] is False
    assert [name.replace("[0]", "[]") for name in asked.dropped] == [f"{PATHS[client]}.strict"]
    assert shape_faults("messages", asked.body) == []


def closed_to(*needed: str, **named: Json) -> Json:
    return {"type": "object", "properties": named, "required": list(needed), "additionalProperties": False}


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "taken"),
    [
        (closed_to("at", at=TEXT), True),
        (closed_to(), True),
        (closed_to("at", at={"anyOf": [closed_to("b", b=TEXT), {"type": "null"}]}), True),
        ({**closed_to("at", at={"$ref": "#/$defs/a"}), "$defs": {"a": closed_to("b", b={"type": "string", "format": "date"})}}, True),
        (closed_to("a", a=TEXT, b=TEXT), False),
        ({"type": "object", "properties": {"at": TEXT}, "required": ["at"]}, False),
        (closed_to("at", at={"type": "array", "items": {"type": "object"}}), False),
        ({**closed_to("at", at={"$ref": "#/$defs/a"}), "$defs": {"a": closed_to(b=TEXT)}}, False),
        (closed_to("at", at={"type": "string", "default": "x"}), False),
        (closed_to("at", at={"oneOf": [TEXT]}), False),
        (closed_to("at", at={"type": "string", "format": "uri"}), False),
        (closed_to("at", at={"anyOf": [TEXT] * MAX_NODES}), False),
        ({"anyOf": [closed_to()]}, False),
        (closed_to("at", at={"type": ["object", "null"]}), False),
        *(({**closed_to(), name: 1}, False) for name in ("anyOf", "$defs", "properties", "required", "items", "format")),
        (None, False),
    ],
)
def test_which_schemas_openai_takes(schema: Any, taken: bool) -> None:
    assert openai_takes(schema) == taken


@pytest.mark.parametrize("client", ["messages", "converse"])
@pytest.mark.parametrize("upstream", ["completions", "responses", "gemini"])
@pytest.mark.parametrize("schema", [closed_to("at", at=TEXT), closed_to(at=TEXT)], ids=["fits", "optional"])
def test_strict_goes_where_openai_takes_the_schema(client: str, upstream: str, schema: Json) -> None:
    body = asking(client, True, schema)
    asked = pairs.PAIRS[client, upstream].request(body, Options(model="gpt-5.2", vendor="openai"))
    fits = bool(schema["required"])
    # Gemini has no place for it, and that is told once.
    at = f"{PATHS[client]}.strict"
    assert list(asked.dropped) == ([at.replace("[]", "[0]")] if upstream == "gemini" else [] if fits else [at])
    assert shape_faults(upstream, asked.body) == []
    if upstream == "gemini":
        return
    [tool] = asked.body["tools"]
    function = tool["function"] if upstream == "completions" else tool
    assert function["strict"] is fits
    assert function["parameters"] == schema


@pytest.mark.parametrize("client", ["messages", "converse"])
@pytest.mark.parametrize("upstream", ["completions", "responses"])
@pytest.mark.parametrize(
    ("vendor", "schema", "strict"),
    [("openai", closed_to("at", at=TEXT), True), ("azure", closed_to("at", at=TEXT), True), ("groq", closed_to("at", at=TEXT), None),
     ("openai", closed_to(at=TEXT), None)],
    ids=["openai", "azure", "others", "optional"],
)  # fmt: skip
def test_answers_are_as_strict_as_openai_takes_their_schemas(client: str, upstream: str, vendor: str, schema: Json, strict: bool) -> None:
    body: Json = {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}],
                  "output_config": {"format": {"type": "json_schema", "schema": schema}}}  # fmt: skip
    if client == "converse":
        body = {"messages": [{"role": "user", "content": [{"text": "hi"}]}], "outputConfig": {
            "textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": json.dumps(schema)}}}}}  # fmt: skip
    asked = pairs.PAIRS[client, upstream].request(body, Options(model="gpt-5.2", vendor=vendor))
    assert shape_faults(upstream, asked.body) == []
    form = asked.body["response_format"]["json_schema"] if upstream == "completions" else asked.body["text"]["format"]
    assert form["schema"] == schema
    assert form.get("strict") is strict
