"""Every endpoint of a running admin server answers as docs/schema/admin.openapi.json says: status, type and document."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from tests.end_to_end.running import Gateway

DOCUMENT = json.loads((Path(__file__).parents[2] / "docs/schema/admin.openapi.json").read_text())
CONFIG = """
gateways: {default: {port: {port}}}
routes:
- name: hello
  policies: {directResponse: {status: 200, body: hello}}
virtualKeys:
  teams: [{name: fixed, limits: [{requests: 5, per: minute}]}]
"""


class Call(NamedTuple):
    """One request. `path`: where the template has names; `status`: what is expected."""

    method: str
    template: str
    status: int = 200
    path: str = ""
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()


PRICES = {"inline": {"providers": {"openai": {"models": {"gpt-4o": {"rates": {"input": "2.5", "output": "10"}}}}}}}
NOTHING: dict[str, Any] = {}
KEY = {
    "name": "ada",
    "team": "research",
    "owner": "a@b.test",
    "limits": [{"requests": 5, "per": "day"}],
    "tags": {"x": "y"},
}
RESOURCE = "/api/config/resources/traffic.route/other"
CALLS = (
    Call("GET", "/", 308),
    Call("GET", "/ui"),
    Call("GET", "/ui/{path}", path="/ui/assets/app.js"),
    Call("GET", "/ui/{path}", 404, "/ui/none.js"),
    Call("GET", "/api/state"),
    Call("GET", "/ui/api/state"),
    Call("GET", "/api/history"),
    Call("GET", "/ui/api/history"),
    Call("GET", "/api/guards"),
    Call("GET", "/ui/api/guards"),
    Call("GET", "/api/mcp"),
    Call("GET", "/ui/api/mcp"),
    Call("POST", "/api/relay", body={"bind": "bind/{port}", "path": "/"}),
    Call("POST", "/ui/api/relay", body={"bind": "bind/{port}", "path": "/"}),
    Call("POST", "/api/relay", 400, body={"bind": "none"}),
    Call("GET", "/api/runtime"),
    Call("POST", "/api/cel", body={"expression": "1 + 2"}),
    Call("POST", "/cel", body={"expression": "request.path", "data": {"request": {"path": "/x"}}}),
    Call("POST", "/cel", 400, body={"expression": "1 +"}),
    Call("GET", "/api/config"),
    Call("GET", "/api/config/effective"),
    Call("GET", "/api/config/schema"),
    Call("GET", "/api/config/text"),
    Call("POST", "/api/config/check", body={"text": "gateways: {default: {port: 1}}\n"}),
    Call("POST", "/api/config/check", body={"text": "gatewayz: {}\n"}),
    Call("POST", "/api/config/check", 400, body={"text": 3}),
    Call("POST", "/api/config", 428, body=NOTHING),
    Call("POST", "/api/config", 500, body={"gatewayz": {}}),
    Call("POST", "/api/config/text", 422, body={"text": "gatewayz: {}\n"}),
    Call("POST", "/api/config/text", 409, body={"text": "gateways: {default: {port: 1}}\n", "revision": "old"}),
    Call("GET", "/api/config/resources"),
    Call("GET", "/api/config/resources/{kind}", path="/api/config/resources/traffic.route"),
    Call("GET", "/api/config/resources/{kind}", 404, "/api/config/resources/none"),
    Call(
        "PUT",
        "/api/config/resources/{kind}/{id}",
        path=RESOURCE,
        body={"value": {"name": "other", "matches": [{"path": {"exact": "/o"}}]}},
    ),
    Call("PUT", "/api/config/resources/{kind}/{id}", 422, RESOURCE, {"value": {"name": "other", "matchez": []}}),
    Call(
        "PUT", "/api/config/resources/{kind}/{id}", 409, RESOURCE, {"value": {"name": "other"}}, (("if-match", '"77"'),)
    ),
    Call("PUT", "/api/config/resources/{kind}", 400, "/api/config/resources/traffic.route", {"resources": []}),
    Call(
        "PUT",
        "/api/config/resources/{kind}",
        path="/api/config/resources/traffic.route",
        body={"resources": [{"value": {"name": "third"}}]},
    ),
    Call("GET", "/api/config/resources/{kind}/{id}", path=RESOURCE),
    Call("GET", "/api/config/resources"),
    Call("DELETE", "/api/config/resources/{kind}/{id}", path=RESOURCE),
    Call("DELETE", "/api/config/resources/{kind}/{id}", 404, RESOURCE),
    Call(
        "PUT",
        "/api/teams/{name}",
        path="/api/teams/research",
        body={"limits": [{"dollars": 5, "per": "month", "warnAtPercent": 80}]},
    ),
    Call("GET", "/api/teams"),
    Call("GET", "/api/teams/{name}", path="/api/teams/research"),
    Call("GET", "/api/teams/{name}", 404, "/api/teams/none"),
    Call("POST", "/api/keys", 201, body=KEY),
    Call("POST", "/api/keys", 400, body={"name": "/"}),
    Call("GET", "/api/keys"),
    Call("GET", "/api/keys/{name}", path="/api/keys/ada"),
    Call("PUT", "/api/keys/{name}", path="/api/keys/ada", body={"team": "research", "allowedModels": ["gpt-4o"]}),
    Call("POST", "/api/keys/{name}/rotate", path="/api/keys/ada/rotate", body=NOTHING),
    Call("POST", "/api/keys/{name}/revoke", path="/api/keys/ada/revoke", body=NOTHING),
    Call("GET", "/api/keys"),
    Call("DELETE", "/api/keys/{name}", path="/api/keys/ada"),
    Call("DELETE", "/api/keys/{name}", 404, "/api/keys/ada"),
    Call("DELETE", "/api/teams/{name}", path="/api/teams/research"),
    Call("GET", "/api/spend"),
    Call("GET", "/api/spend", 400, "/api/spend?by=colour"),
    Call("POST", "/api/logs/search", body=NOTHING),
    Call("POST", "/api/logs/search", 400, body={"colour": 1}),
    Call("POST", "/api/logs/get", 404, body={"id": "999999999"}),
    Call("POST", "/api/logs/tail", body=NOTHING),
    Call("POST", "/api/logs/analytics/summary", body=NOTHING),
    Call("GET", "/api/costs/models"),
    Call("POST", "/api/costs/refresh-base", 404, body=NOTHING),
    Call("GET", "/config_dump"),
    Call("GET", "/config_dump/same", path=f"/config_dump/same?proof={'0' * 32}.{'0' * 64}"),
    Call("GET", "/config_dump/same", 400, "/config_dump/same?proof=none"),
    Call("GET", "/logging"),
    Call("GET", "/logging", 405, "/logging?level=debug"),
    Call("POST", "/logging", path="/logging?level=info"),
    Call("POST", "/logging", 400, "/logging?level=loud"),
    Call("POST", "/debug/pprof/heap", path="/debug/pprof/heap?rate=65536"),
    Call("POST", "/debug/pprof/heap", 400, "/debug/pprof/heap?rate=1"),
    Call("GET", "/debug/pprof/heap"),
    Call("GET", "/debug/pprof/profile", path="/debug/pprof/profile?seconds=1"),
    Call("GET", "/debug/tasks"),
    Call("GET", "/debug/trace"),
    Call("POST", "/debug/trace", 400, "/debug/trace?expression=1%20%2B"),
    Call("GET", "/memory"),
    # HEADGATE_PROGRAM is a program that serves nothing.
    Call("POST", "/upgrade", 409),
    Call("POST", "/quitquitquit"),
)


@pytest.mark.executed
def test_answers_are_those_of_the_document(gateway: Callable[..., Gateway], tmp_path: Path) -> None:
    settings = f"storage: {{mode: hybrid}}\ndatabase: {{url: 'sqlite://{tmp_path}/data.db'}}\nmodelCatalog: [{json.dumps(PRICES)}]"
    running = gateway(CONFIG, environment={"HEADGATE_PROGRAM": "/bin/false"}, settings=settings)
    wrong = []
    for number, call in enumerate(CALLS):
        status, fields, body = ask(running, call)
        told = faults(call, fields, body) if status == call.status else [f"{status} {body[:300]!r}"]
        wrong += [f"call {number}: {call.method} {call.path or call.template}: {one}" for one in told]
    assert wrong == []
    assert running.process.wait(60) == 0


def test_every_operation_is_called() -> None:
    operations = {(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item}
    assert {(call.method, call.template) for call in CALLS} == operations


def test_pages_of_other_sites_are_refused(gateway: Callable[..., Gateway]) -> None:
    running = gateway(CONFIG)
    call = Call("GET", "/api/runtime", 403, headers=(("origin", "http://other.test"), ("sec-fetch-site", "cross-site")))
    assert ask(running, call)[0] == 403


def ask(running: Gateway, call: Call) -> tuple[int, dict[str, str], bytes]:
    """What the server answers; of a stream only what comes first."""
    connection = http.client.HTTPConnection("127.0.0.1", running.admin, timeout=60)
    text = None if call.body is None else json.dumps(call.body).replace("{port}", str(running.port))
    headers = dict(call.headers) | (
        {"content-type": "application/json"} if text is not None or "/api/" in call.template else {}
    )
    connection.request(call.method, call.path or call.template, text, headers)
    answer = connection.getresponse()
    fields = {name.lower(): value for name, value in answer.getheaders()}
    stream = fields.get("content-type", "").startswith(("text/event-stream", "application/x-ndjson"))
    body = answer.readline() if stream else answer.read()
    connection.close()
    return answer.status, fields, body


def faults(call: Call, fields: dict[str, str], body: bytes) -> list[str]:
    """Hold an answer against the document."""
    said = DOCUMENT["paths"][call.template][call.method.lower()]["responses"]
    if str(call.status) not in said:
        return [f"{call.status} is not in the document"]
    content = said[str(call.status)].get("content", {})
    kind = fields.get("content-type", "").partition(";")[0]
    # Profiles have no type, and files of the page have their own.
    if not content or not kind or call.template == "/ui/{path}":
        return []
    if kind not in content:
        return [f"its type is {kind}"]
    schema = content[kind].get("schema")
    if schema is None:
        return []
    value = json.loads(body) if kind == "application/json" else body.decode()
    text = json.dumps(schema).replace("#/components", "urn:admin#/components")
    found = Draft202012Validator(json.loads(text), registry=resolved()).iter_errors(value)
    return [f"{error.json_path}: {error.message[:300]}" for error in found]


def resolved() -> Registry[Any]:
    """The document, with references that lead into itself."""
    text = json.dumps(DOCUMENT).replace("#/components", "urn:admin#/components")
    return Registry().with_resource("urn:admin", Resource.opaque(json.loads(text)))
