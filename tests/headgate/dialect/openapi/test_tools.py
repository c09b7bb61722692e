"""Documents as tools: names, texts, schemas, servers, parameters, and what is refused with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.dialect.openapi.document import OpenApiError
from headgate.dialect.openapi.tools import Api, OperationTool, read_tools

Json = dict[str, Any]


def document(paths: Json, **more: Any) -> Json:
    return {"openapi": "3.0.3", "info": {"title": "T", "version": "1"}, "paths": paths, **more}


def read(paths: Json, **more: Any) -> Api:
    return read_tools(json.dumps(document(paths, **more)))


def one(operation: Json, item: Json | None = None, path: str = "/x", **more: Any) -> OperationTool:
    """The tool of one operation."""
    found = read({path: {**(item or {}), "get": {"operationId": "op", **operation}}}, **more)
    return found.tools["op"]


def template(tool: OperationTool) -> str:
    return "".join(piece if isinstance(piece, str) else "{" + piece.name + "}" for piece in tool.pieces)


def test_every_operation_is_a_tool_in_the_order_of_the_document() -> None:
    methods = ["trace", "patch", "head", "options", "delete", "post", "put", "get"]
    paths = {"/b": {m: {"operationId": f"b_{m}"} for m in methods}, "/a": {"get": {"operationId": "a.get"}}, "x-y": 1}
    found = read(paths, info={"title": "Shop", "version": "2"})
    assert list(found.tools) == [*(f"b_{m}" for m in methods), "a.get"]
    assert [tool.method for tool in found.tools.values()] == [*(m.upper() for m in methods), "GET"]
    assert (found.title, found.version, found.warnings) == ("Shop", "2", ())


@pytest.mark.parametrize(
    ("texts", "description", "title"),
    [
        ({"description": "D", "summary": "S"}, "D", "S"),
        ({"summary": "S"}, "S", "S"),
        ({"summary": ""}, "op", None),
        ({}, "op", None),
        ({"summary": "x" * 63 + "é"}, "x" * 63 + "é", "x" * 63),
    ],
)
def test_texts_of_a_tool(texts: Json, description: str, title: str | None) -> None:
    listed = one(texts).listed
    assert (listed["description"], listed.get("title")) == (description, title)


SERVERS = [
    (None, ""),
    ([], ""),
    (["https://api.example"], ""),
    (["https://api.example/"], ""),
    (["https://api.example/v1"], "/v1"),
    (["https://api.example/v1/?a=/b#/c"], "/v1"),
    (["https://api.example?a=/b"], ""),
    (["https://{region}.example/v1"], "/v1"),
    (["https://api.example/{base}/v1"], "/{base}/v1"),
    (["/v2"], "/v2"),
    (["v2/"], "/v2"),
    (["//api.example/v3"], "/v3"),
    (["/"], ""),
]


@pytest.mark.parametrize(("urls", "prefix"), SERVERS)
def test_the_path_of_the_server_stands_in_front(urls: list[str] | None, prefix: str) -> None:
    more = {} if urls is None else {"servers": [{"url": url} for url in urls]}
    assert template(one({}, path="/a/b", **more)) == f"{prefix}/a/b"


def test_variables_of_a_server_have_their_defaults_and_the_nearest_server_counts() -> None:
    server = {"url": "https://h/{v}", "variables": {"v": {"default": "v7"}}}
    assert template(one({}, servers=[server])) == "/v7/x"
    assert template(one({"servers": [{"url": "/own"}]}, servers=[server])) == "/own/x"
    assert template(one({}, {"servers": [{"url": "/item"}]}, servers=[server])) == "/item/x"


def parameter(name: str, place: str, **more: Any) -> Json:
    return {"name": name, "in": place, "schema": {"type": "string"}, **more}


def test_arguments_are_grouped_by_where_they_go() -> None:
    tool = one(
        {
            "parameters": [
                parameter("id", "path"),
                parameter("q", "query", required=True, description="what to find"),
                parameter("page", "query"),
                parameter("X-Trace", "header"),
            ],
            "requestBody": {
                "required": True,
                "description": "the thing",
                "content": {"application/json; charset=utf-8": {"schema": {"type": "object"}}},
            },
        },
        path="/x/{id}",
    )
    assert tool.listed["inputSchema"] == {
        "type": "object",
        "required": ["path", "query", "body"],
        "properties": {
            "path": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
            "query": {
                "type": "object",
                "required": ["q"],
                "properties": {"q": {"type": "string", "description": "what to find"}, "page": {"type": "string"}},
            },
            "header": {"type": "object", "required": [], "properties": {"X-Trace": {"type": "string"}}},
            "body": {"description": "the thing", "type": "object"},
        },
    }


def test_a_tool_without_arguments_takes_an_object_all_the_same() -> None:
    assert one({}).listed["inputSchema"] == {"type": "object", "required": [], "properties": {}}


def test_parameters_of_the_path_are_inherited_and_replaced_by_name_and_place() -> None:
    item = {"parameters": [parameter("a", "query"), parameter("X-A", "header"), parameter("a", "header"),
                           parameter("c", "cookie")]}  # fmt: skip
    own = [parameter("a", "query", required=True), parameter("x-a", "header", description="own")]
    tool = one({"parameters": own}, item)
    assert [(p.name, p.place, p.required) for p in tool.parameters] == [
        ("a", "query", True),
        ("x-a", "header", False),
        ("a", "header", False),
    ]


def test_a_placeholder_without_a_parameter_is_one_all_the_same() -> None:
    tool = one({}, path="/a/{id}/b")
    assert tool.listed["inputSchema"]["properties"]["path"]["properties"] == {"id": {"type": "string"}}
    assert tool.listed["inputSchema"]["required"] == ["path"]


def test_fields_of_the_connection_and_of_credentials_are_no_arguments() -> None:
    names = ["Authorization", "COOKIE", "host", "Content-Length", "transfer-encoding", "Accept", "X-Ok"]
    tool = one({"parameters": [parameter(name, "header") for name in names]})
    assert [p.name for p in tool.parameters] == ["X-Ok"]


def test_references_lead_to_parameters_bodies_schemas_and_paths() -> None:
    components = {
        "parameters": {"Id": parameter("id", "path", schema={"$ref": "#/components/schemas/Id"})},
        "requestBodies": {"Pet": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}},
        "schemas": {
            "Id": {"type": "integer"},
            "Pet": {"type": "object", "properties": {"id": {"$ref": "#/components/schemas/Id"}}},
        },
        "pathItems": {"P": {"post": {
            "operationId": "put_pet", "parameters": [{"$ref": "#/components/parameters/Id"}],
            "requestBody": {"$ref": "#/components/requestBodies/Pet"},
        }}},
    }  # fmt: skip
    found = read({"/p/{id}": {"$ref": "#/components/pathItems/P"}}, components=components).tools["put_pet"]
    properties = found.listed["inputSchema"]["properties"]
    assert properties["path"]["properties"] == {"id": {"type": "integer"}}
    assert properties["body"] == {"type": "object", "properties": {"id": {"type": "integer"}}}


def test_a_schema_within_itself_leads_to_definitions() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}
    schema = one({"requestBody": body}, components={"schemas": {"Node": node}}).listed["inputSchema"]
    assert schema["properties"]["body"]["properties"]["next"] == {"$ref": "#/$defs/Node"}
    assert schema["$defs"]["Node"]["properties"]["next"] == {"$ref": "#/$defs/Node"}


def test_definitions_of_one_name_in_two_places_stay_apart() -> None:
    def node(kind: str) -> Json:
        return {"type": "object", "properties": {"kind": {"const": kind}, "next": {"$ref": f"#/components/{kind}/Node"}}}

    components = {"schemas": {"Node": node("schemas")}, "x-more": {"Node": node("x-more")}}
    both = {"oneOf": [{"$ref": "#/components/schemas/Node"}, {"$ref": "#/components/x-more/Node"}]}
    schema = one({"requestBody": {"content": {"application/json": {"schema": both}}}}, components=components)
    listed = schema.listed["inputSchema"]
    nexts = [part["properties"]["next"]["$ref"] for part in listed["properties"]["body"]["oneOf"]]
    kinds = [listed["$defs"][ref.removeprefix("#/$defs/")]["properties"]["kind"]["const"] for ref in nexts]
    assert kinds == ["schemas", "x-more"]


BODIES = [
    (["application/octet-stream"], {"type": "string", "format": "byte"}),
    (["application/octet-stream", "application/merge-patch+json"], {"type": "object"}),
    (["text/plain"], {"type": "string"}),
    (["multipart/form-data"], None),
]


@pytest.mark.parametrize(("media", "schema"), BODIES)
def test_kinds_of_bodies(media: list[str], schema: Json | None) -> None:
    content = {kind: {"schema": {"type": "object"}} for kind in media}
    found = one({"requestBody": {"content": content}}).listed["inputSchema"]["properties"]
    assert found.get("body") == schema


def test_a_body_that_must_be_there_and_cannot_be_said_is_warned_of() -> None:
    body = {"required": True, "content": {"multipart/form-data": {}}}
    found = read({"/x": {"post": {"operationId": "up", "requestBody": body}}})
    assert found.warnings == ("paths[/x].post: a body of type multipart/form-data cannot be sent",)


REFUSED = [
    ({"/x": {"get": {}}}, {}, "paths[/x].get: there is no operationId"),
    ({"/x": {"get": {"operationId": "a"}, "put": {"operationId": "a"}}}, {}, "'a' is defined twice"),
    ({"/x": {"get": {"operationId": "a", "parameters": [parameter("c", "cookie")]}}}, {}, "cookie parameters"),
    ({"/x": {"get": {"operationId": "a", "parameters": [{"name": "c", "in": "query", "content": {}}]}}}, {}, "'content'"),
    ({"/x": {"get": {"operationId": "a", "parameters": [parameter("c", "path", style="matrix")]}}}, {}, "'matrix'"),
    ({"/x": {"get": {"operationId": "a", "parameters": [{"$ref": "#/nope"}]}}}, {}, "refers to nothing"),
    ({"/x": {"get": {"operationId": "a", "parameters": [{"$ref": "http://evil/x"}]}}}, {}, "is outside of the document"),
    ({"/x": {"get": {"operationId": "a", "parameters": [parameter("a b", "header")]}}}, {}, "not a header name"),
    ({"/x": {"get": {"operationId": "a"}}}, {"servers": [{"url": "/a"}, {"url": "/b"}]}, "servers: there are several"),
    ({"/a/../b": {"get": {"operationId": "a"}}}, {}, "dot segments"),
    ({"x": {"get": {"operationId": "a"}}}, {}, "must begin with a slash"),
    ({"/x": []}, {}, "paths[/x]: not a map"),
]


@pytest.mark.parametrize(("paths", "more", "reason"), REFUSED)
def test_what_cannot_be_served_is_refused_with_its_place(paths: Json, more: Json, reason: str) -> None:
    with pytest.raises(OpenApiError) as caught:
        read(paths, **more)
    assert reason in str(caught.value)


def test_yaml_is_read_and_its_faults_tell_file_and_line() -> None:
    text = "openapi: 3.1\npaths:\n  /x:\n    get: {operationId: a, parameters: [{name: no, in: query}]}\n"
    assert list(read_tools(text).tools) == ["a"]
    with pytest.raises(OpenApiError, match=r"api\.yaml:2"):
        read_tools("openapi: 3.0.0\npaths: ][\n", "api.yaml")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"swagger": "2.0", "paths": {}}', "Swagger 2"),
        ('{"openapi": "4.0", "paths": {}}', "3.0 or 3.1"),
        ('{"openapi": "3.0.0"}', "no 'paths'"),
        ("[]", "not a map"),
        ("", "3.0 or 3.1"),
        ('{"openapi": "3.0.0", "paths": {"/x": {"get": {"operationId": "a", "parameters": [{"name": "a", "in": "query", "schema": {"maximum": NaN}}]}}}}', "not valid JSON"),
        ('{"openapi": "3.0.0", "paths":' + "[" * 5000 + "]" * 5000 + "}", "nested"),
    ],
)  # fmt: skip
def test_what_is_no_openapi_document(text: str, reason: str) -> None:
    with pytest.raises(OpenApiError, match=reason):
        read_tools(text)


def test_references_that_multiply_are_cut_off_not_followed_for_ever() -> None:
    schemas: Json = {"s0": {"type": "string"}}
    for n in range(1, 40):
        ref = {"$ref": f"#/components/schemas/s{n - 1}"}
        schemas[f"s{n}"] = {"type": "object", "properties": {"a": ref, "b": ref, "c": ref}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/s39"}}}}
    tool = one({"requestBody": body}, components={"schemas": schemas})
    assert len(json.dumps(tool.listed)) < 2_000_000
    circle = {"a": {"$ref": "#/components/schemas/b"}, "b": {"$ref": "#/components/schemas/a"}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/a"}}}}
    with pytest.raises(OpenApiError, match="circular"):
        one({"requestBody": body}, components={"schemas": circle})
