"""Expressions in all policies that take one: bodies are read for them, what is absent is null, and failures are told.

One gateway serves a route for each policy.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.end_to_end.asking import Answer
from tests.end_to_end.llm_rig import served
from tests.end_to_end.running import PATIENCE, free_port
from tests.end_to_end.tracing import Watch, row

LARGEST = 65_536
# A route by its path, with a policy that reads the request body.
ROUTES: dict[str, str] = {
    "allow": "authorization: {rules: ['string(request.body) == \"open\"']}",
    "key": "apiKey: {keys: [{key: k1}], location: {expression: 'json(request.body).key'}}",
    "limit": "localRateLimit: {conditional: [{condition: 'request.body == b\"x\"', maxTokens: 1, tokensPerFill: 1, fillInterval: 1h}]}",
    "set": "transformations: {request: {set: {x-body: 'string(request.body)', x-size: 'string(size(request.bodyPrefix))'}}}",
    "sizes": "transformations: {request: {set: {x-whole: 'string(size(request.body))', x-size: 'string(size(request.bodyPrefix))'}}}",
    "answered": "transformations: {response: {set: {x-body: 'string(request.body)', x-answer: 'string(size(response.body) > 0)'}}}",
    "begun": "transformations: {response: {set: {x-whole: 'string(size(response.body))', x-prefix: 'string(size(response.bodyPrefix))'}}}",
    "delay": "timeout: {requestTimeout: 2s}\n    delay: {duration: 'duration(json(request.body).wait)'}",
    "direct": "directResponse: {conditional: [{condition: 'size(request.body) > 3', status: 201, bodyExpression: 'request.body + b\"!\"'}]}",
    "retry": "retry: {attempts: 1, codes: [599], precondition: 'string(request.body) != \"never\"', "
    "condition: 'string(request.body) != \"once\"'}",
    "conditional": "transformations: {conditional: [{condition: 'json(request.body).on', request: {set: {x-on: '\"yes\"'}}}]}",
    "bounded": "buffer: {request: {maxBytes: 4, failureMode: failOpen}}\n    "
    "transformations: {request: {set: {x-size: 'string(size(request.bodyPrefix))', x-body: 'string(request.body)'}}}",
}  # fmt: skip
BACKENDS: dict[str, str] = {
    "behind": "authorization: {rules: ['string(request.body) == \"open\"']}",
    "behind-set": "transformations: {request: {set: {x-body: 'string(request.body) + backend.name'}}}",
    "sticky": "sessionAffinity: {source: 'string(request.body)'}",
    "sick": "health: {unhealthyExpression: 'string(request.body) == \"sick\"', eviction: {duration: 1h, consecutiveFailures: 1}}",
}


class Case:
    """A request to a route, and what comes of it."""

    def __init__(self, route: str, body: str, status: int = 200, **fields: str | None) -> None:
        self.route, self.body, self.status = route, body, status
        self.seen = {name.replace("_", "-"): value for name, value in fields.items()}


CASES = [
    Case("allow", "open"), Case("allow", "no", 403), Case("allow", "", 403), Case("allow", "o" * (LARGEST + 1), 403),
    Case("key", '{"key": "k1"}'), Case("key", '{"key": "k2"}', 401), Case("key", "{", 401),
    Case("limit", "x"), Case("limit", "x", 429), Case("limit", "y"), Case("limit", "y"),
    Case("set", "hello", x_body="hello", x_size="5"), Case("set", "", x_body="", x_size="0"),
    Case("sizes", "y" * LARGEST, x_whole=str(LARGEST), x_size=str(LARGEST)),
    Case("sizes", "y" * (LARGEST + 1), x_whole=None, x_size=str(LARGEST)),
    Case("answered", "hello", answer_x_body="hello", answer_x_answer="true"),
    Case("begun", "y" * LARGEST, answer_x_whole=None, answer_x_prefix=str(LARGEST)),
    Case("delay", '{"wait": "1ms"}'), Case("delay", '{"wait": "1h"}', 504), Case("delay", "none"),
    Case("direct", "abcd", 201), Case("direct", "abc"),
    Case("retry", "twice"), Case("retry", "once"), Case("retry", "never"),
    Case("conditional", '{"on": true}', x_on="yes"), Case("conditional", '{"on": false}', x_on=None),
    Case("bounded", "123", x_size="3", x_body="123"), Case("bounded", "12345", x_size="4", x_body=None),
    Case("behind", "open"), Case("behind", "no", 403),
    Case("behind-set", "a"),
    Case("sticky", "a"), Case("sick", "well"), Case("sick", "sick"),
    Case("early", "bad", 403), Case("early", "good"),
]  # fmt: skip
# Identities that a request without credentials does not have: null in every policy.
NULLS = ["jwt", "apiKey", "basicAuth", "extauthz", "extproc", "mcpGuardrails", "metadata", "source.identity", "source.spiffeId",
         "source.subjectAltNames", "source.issuer", "source.subject", "source.subjectCn", "source.certificate",
         "source.unverifiedWorkload", "source.connectHeaders", "destination.hostname"]  # fmt: skip


def config(echo: int) -> str:
    routes = "".join(
        f"- name: {name}\n  matches: [{{path: {{pathPrefix: /{name}}}}}]\n  policies:\n    {text}\n"
        f"  backends: [{{host: '127.0.0.1:{echo}'}}]\n"
        for name, text in ROUTES.items()
    )
    routes += "".join(
        f"- name: {name}\n  matches: [{{path: {{pathPrefix: /{name}}}}}]\n"
        f"  backends: [{{host: '127.0.0.1:{echo}', policies: {{{text}}}}}]\n"
        for name, text in BACKENDS.items()
    )
    nulls = ", ".join(f'"{name}": {name} == null && !({name} != null)' for name in NULLS)
    return f"""
gateways:
  default: {{port: {{port}}}}
  edge: {{port: SPARE, authorization: {{rules: [{{deny: 'string(request.body) == "bad"'}}]}}}}
frontendPolicies:
  http: {{maxBufferSize: {LARGEST}}}
  accessLog: {{add: {{null.field: 'source.subjectCn', body.size: 'size(request.path)'}}}}
routes:
{routes}- name: early
  gateways: edge
  backends: [{{host: '127.0.0.1:{echo}'}}]
- name: nulls
  matches: [{{path: {{pathPrefix: /nulls}}}}]
  policies:
    basicAuth: {{mode: optional, htpasswd: 'ada:{{SHA}}qUqP5cyxm6YcTAhz05Hph5gvu9M='}}
    apiKey: {{mode: optional, keys: [{{key: k}}], location: {{header: {{name: x-key}}}}}}
    directResponse: {{status: 200, bodyExpression: '{{{nulls}}}'}}
- name: only-users
  matches: [{{path: {{pathPrefix: /only-users}}}}]
  policies:
    apiKey: {{mode: optional, keys: [{{key: k}}], location: {{header: {{name: x-key}}}}}}
    authorization: {{rules: ['basicAuth != null', 'jwt != null', 'apiKey != null']}}
    directResponse: {{status: 200, body: in}}
- name: fails
  matches: [{{path: {{pathPrefix: /fails}}}}]
  policies:
    authorization: {{rules: ['int(request.headers["x-n"]) / int(request.headers["x-m"]) == 1']}}
    directResponse: {{status: 200, bodyExpression: 'json(request.headers["x-json"]).a'}}
- name: odd
  matches: [{{path: {{pathPrefix: /odd}}}}]
  policies:
    transformations: {{request: {{set: {{x-list: '[1, 2]', x-null: metadata, x-broken: 'int("x")'}}, body: 'json("{{")'}}}}
    delay: {{duration: '"long"'}}
    localRateLimit: {{conditional: [{{condition: 'size(request.path)', maxTokens: 1, tokensPerFill: 1, fillInterval: 1h}}]}}
  backends: [{{host: '127.0.0.1:{echo}'}}]
"""


def wait_for(condition: Callable[[], bool], state: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, state()
        time.sleep(0.02)


class Rig:
    def __init__(self, running: Any, edge: int) -> None:
        self.running, self.edge = running, edge

    def send(self, route: str, body: str = "", **fields: str) -> Answer:
        port = self.edge if route == "early" else self.running.port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            headers = {"host": "a.test", **{name.replace("_", "-"): value for name, value in fields.items()}}
            connection.request("POST", f"/{route}", body.encode(), headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def rig(echo: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    edge = free_port()
    text = config(echo).replace("SPARE", str(edge))
    with served(tmp_path_factory.mktemp("expressions"), text, settings="logging: {level: 'info,headgate.expr=debug'}") as running:
        yield Rig(running, edge)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.route}-{case.body[:12]}")
def test_a_policy_reads_the_body(rig: Rig, case: Case) -> None:
    answer = rig.send(case.route, case.body)
    assert answer.status == case.status, answer.body
    if case.status == 200:
        assert answer.seen["body"] == case.body, "the backend gets all of it"
    for name, value in case.seen.items():
        if name.startswith("answer-"):
            assert answer.headers.get(name.removeprefix("answer-")) == value
        else:
            assert answer.got(name) == ([] if value is None else [value])
    if case.route == "direct" and case.status == 201:
        assert answer.body == b"abcd!"
    if case.route == "behind-set":
        assert answer.got("x-body")[0].startswith("a127.0.0.1:")


def test_conditions_of_retries_read_the_body(rig: Rig) -> None:
    for body, retries in (("twice", 1), ("once", 0), ("never", 0)):
        before = rig.running.metric('gw_retries_total{')
        assert rig.send("retry", body).status == 200
        assert rig.running.metric('gw_retries_total{') - before == retries, body


def test_nothing_that_was_not_read_was_asked_for(rig: Rig) -> None:
    for name in (*ROUTES, *BACKENDS, "early"):
        rig.send(name, "{}")
    rig.send("nulls")
    rig.running.wait_log("http.path=/nulls")
    assert "was not read" not in rig.running.log()


RULE = 'int(request.headers["x-n"]) / int(request.headers["x-m"]) == 1'
BODY = 'json(request.headers["x-json"]).a'
# Fields of a request, and which expression fails why in the end.
FAILURES = [
    ({}, 403, f"authorization failed: expression `{RULE}`: no such key: x-n"),
    ({"x-n": "1"}, 403, f"authorization failed: expression `{RULE}`: no such key: x-m"),
    ({"x-n": "1", "x-m": "0"}, 403, f"authorization failed: expression `{RULE}`: divide by zero"),
    ({"x-n": "one", "x-m": "1"}, 403, f"authorization failed: expression `{RULE}`: not an integer"),
    ({"x-n": "1", "x-m": "2"}, 403, "authorization failed"),
    ({"x-n": "1", "x-m": "1"}, 500, f"failed to apply filters: the body expression failed: expression `{BODY}`: no such key: x-json"),
    ({"x-n": "1", "x-m": "1", "x-json": "{"}, 500, f"failed to apply filters: the body expression failed: expression `{BODY}`: invalid JSON"),
]


@pytest.mark.parametrize(("fields", "status", "error"), FAILURES)
def test_a_failing_expression_says_which_and_why(rig: Rig, fields: dict[str, str], status: int, error: str) -> None:
    start = len(rig.running.log())
    assert rig.send("fails", **fields).status == status
    quoted = error.replace('"', '\\"')
    rig.running.wait_log("http.path=/fails")
    wait_for(lambda: f'error="{quoted}"' in rig.running.log()[start:], lambda: rig.running.log()[start:])
    if "`" in error:
        reason = error.rpartition("`: ")[2]
        told = [line for line in rig.running.log()[start:].splitlines() if "expression failed" in line]
        assert any(reason in line and ("x-n" in line or "x-json" in line) for line in told), told


def test_the_trace_says_which_and_why(rig: Rig) -> None:
    watch = Watch(rig.running)
    rig.send("fails", **{"x-n": "1", "x-m": "0"})
    told = [event["message"] for event in watch.wait() if row(event) == "cel"]
    assert [(one["expr"], one["result"]) for one in told][:1] == [(RULE, {"error": "divide by zero"})]


def test_values_that_do_not_fit_are_told_and_change_nothing(rig: Rig) -> None:
    start = len(rig.running.log())
    answer = rig.send("odd", "kept")
    assert (answer.status, answer.seen["body"]) == (200, "kept")
    assert answer.got("x-list") == answer.got("x-null") == answer.got("x-broken") == []
    wait_for(lambda: "http.path=/odd" in rig.running.log()[start:], lambda: rig.running.log()[start:])
    told = rig.running.log()[start:]
    for expression, reason in (
        ("size(request.path)", "a condition is no bool"), ("[1, 2]", "a list is no value of a header field"), ('expression="\\"...', "neither a duration"),
        ("int(", "not an integer"), ("json(", "invalid JSON"),
    ):
        assert any(expression in line and reason in line for line in told.splitlines() if "expression failed" in line), (expression, told)
    assert "error=" in next(line for line in told.splitlines() if "http.path=/odd" in line)


def test_what_is_absent_is_null_in_policies(rig: Rig) -> None:
    assert json.loads(rig.send("nulls").body) == dict.fromkeys(NULLS, True)
    with_key = json.loads(rig.send("nulls", x_key="k").body)
    assert with_key == dict.fromkeys(NULLS, True) | {"apiKey": False}
    assert rig.send("only-users").status == 403
    assert rig.send("only-users", x_key="k").status == 200
