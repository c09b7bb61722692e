"""/debug/trace: what it says of a request, in which order, and to whom."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import threading

import pytest
from tests.end_to_end.asking import ask
from tests.end_to_end.trace_rig import GATEWAY, PLAIN
from tests.end_to_end.tracing import Watch, one, row, rows, wait_for, watchers

pytestmark = pytest.mark.warm

ALL_POLICIES = """
cors: {allowOrigins: ["http://page.test"]}
authorization: {rules: ['request.headers["x-user"] == "me"']}
localRateLimit: [{maxTokens: 10, tokensPerFill: 10, fillInterval: 1s, type: requests}]
transformations: {request: {set: {x-more: 'request.headers["x-user"]'}}}
requestHeaderModifier: {set: {x-set: "1"}}
urlRewrite: {path: {prefix: /new}}
responseHeaderModifier: {set: {x-out: "1"}}
"""


@pytest.fixture
def plain(gateway, echo):
    return gateway(GATEWAY % echo, workers=2)


def test_a_plain_request_gives_the_rows_of_the_specification_in_order(plain, echo) -> None:
    watch = Watch(plain)
    assert ask(plain, path="/some/path?q=1").status == 200
    events = watch.wait()
    assert rows(events) == PLAIN
    ends = [event["eventEnd"] for event in events]
    assert ends == sorted(ends)
    assert {event["severity"] for event in events} == {"info"}
    assert all("scope" not in event for event in events)
    state = one(events, "requestSnapshot initial request")["requestState"]
    assert state["request"]["method"] == "GET"
    assert state["request"]["path"] == "/some/path"
    assert state["request"]["uri"] == "http://a.test/some/path?q=1"
    assert state["request"]["host"] == "a.test"
    assert state["source"]["address"] == "127.0.0.1"
    assert isinstance(state["source"]["port"], int)
    assert one(events, "routeSelection") == {
        "type": "routeSelection", "selectedRoute": "default/web", "evaluatedRoutes": ["default/web"],
    }  # fmt: skip
    final = one(events, "requestSnapshot final request")["requestState"]
    assert final["backend"] == {"name": f"127.0.0.1:{echo}", "type": "static", "protocol": "http"}
    result = next(event for event in events if row(event) == "backendCallResult")
    assert result["message"] == {"type": "backendCallResult", "status": 200, "error": None}
    assert 0 < result["eventStart"] <= result["eventEnd"]
    assert one(events, "backendCallStart")["target"] == f"127.0.0.1:{echo}"
    answered = one(events, "responseSnapshot raw response")["requestState"]
    assert answered["response"]["code"] == 200
    assert answered["proxy"]["requestProcessingDuration"].endswith("s")
    assert float(answered["proxy"]["upstreamDuration"].removesuffix("s")) > 0
    body = base64.b64decode(one(events, "bodySnapshot response")["body"])
    assert json.loads(body)["path"] == "/some/path?q=1"
    assert events[-1]["message"] == {"type": "requestFinished", "status": 200, "error": None}


def test_a_body_on_its_way_is_shown_before_the_result_of_the_call(plain) -> None:
    watch = Watch(plain)
    ask(plain, "POST", body="what was sent")
    events = watch.wait()
    expected = list(PLAIN)
    expected.insert(expected.index("backendCallResult"), "bodySnapshot final request")
    assert rows(events) == expected
    assert base64.b64decode(one(events, "bodySnapshot final request")["body"]) == b"what was sent"


def test_every_policy_tells_what_it_did(policies) -> None:
    running = policies(ALL_POLICIES)
    watch = Watch(running)
    answer = ask(running, headers={"origin": "http://page.test", "x-user": "me"})
    assert answer.status == 200
    events = watch.wait()
    assert rows(events) == [
        *PLAIN[: PLAIN.index("requestSnapshot route policies")],
        "policy cors",
        "requestSnapshot cors",
        "cel",
        "authorizationResult",
        "policy authorization",
        "requestSnapshot authorization",
        "policy local_rate_limit",
        "requestSnapshot local rate limit",
        "cel",
        "policy transformation",
        "requestSnapshot transformation",
        "policy request_header_modifier",
        "requestSnapshot request header modifier",
        "policy url_rewrite",
        "requestSnapshot url rewrite",
        "requestSnapshot route policies",
        "policySelection backend",
        "requestSnapshot final request",
        "backendCallStart",
        "backendCallResult",
        "responseSnapshot raw response",
        "responseSnapshot backend response ready",
        "policy response_header_modifier",
        "responseSnapshot response header modifier",
        "responseSnapshot response headers",
        "responseSnapshot final response",
        "bodySnapshot response",
        "requestFinished",
    ]
    assert one(events, "policy cors")["result"] == {"type": "apply", "details": "origin http://page.test is allowed"}
    assert one(events, "authorizationResult") == {
        "type": "authorizationResult",
        "rules": [{"name": 'request.headers["x-user"] == "me"', "matched": True, "mode": "allow"}],
        "result": "allow",
    }
    limits = one(events, "policy local_rate_limit")["result"]["details"]
    assert (limits["limit"], limits["remaining"]) == (10, 9)
    rewritten = one(events, "requestSnapshot url rewrite")["requestState"]["request"]
    assert rewritten["path"] == "/new/x"
    assert rewritten["headers"]["x-more"] == "me"
    assert rewritten["headers"]["x-set"] == "1"
    values = [event["message"] for event in events if row(event) == "cel"]
    assert [value["result"] for value in values] == [True, "me"]
    selected = one(events, "policySelection route")["effectivePolicy"]
    assert selected["urlRewrite"] is not None
    assert selected["csrf"] is None
    assert one(events, "responseSnapshot final response")["requestState"]["response"]["headers"]["x-out"] == "1"


def test_a_policy_with_nothing_to_do_says_why(policies) -> None:
    running = policies('cors: {allowOrigins: ["*"]}')
    watch = Watch(running)
    ask(running)
    assert one(watch.wait(), "policy cors")["result"] == {"type": "skip", "reason": "request has no Origin header"}


def test_a_refused_request_goes_from_the_policy_to_the_end(policies) -> None:
    running = policies(ALL_POLICIES)
    watch = Watch(running)
    assert ask(running, headers={"x-user": "somebody"}).status == 403
    events = watch.wait()
    found = rows(events)
    end = ["authorizationResult", "policy authorization", "responseSnapshot response header modifier"]
    assert [name for name in found if name in end] == end
    assert found[-2:] == ["responseSnapshot final response", "requestFinished"], "an empty body is no row"
    assert "backendCallStart" not in found
    assert one(events, "authorizationResult")["result"] == "deny"
    severities = {row(event): event["severity"] for event in events}
    assert severities["authorizationResult"] == "error"
    assert severities["requestFinished"] == "warn"


def test_no_route_is_an_error(gateway) -> None:
    running = gateway("gateways:\n  default: {port: {port}}\nroutes:\n- {name: other, hostnames: [other.test], "
                      "policies: {directResponse: {status: 200}}}\n")  # fmt: skip
    watch = Watch(running)
    assert ask(running).status == 404
    events = watch.wait()
    chosen = next(event for event in events if row(event) == "routeSelection")
    assert chosen["severity"] == "error"
    assert chosen["message"]["selectedRoute"] is None
    assert events[-1]["message"]["status"] == 404


def test_a_dead_backend_is_told(gateway) -> None:
    running = gateway("gateways:\n  default: {port: {port}}\nroutes:\n- backends: [{host: '127.0.0.1:1'}]\n")
    watch = Watch(running)
    assert ask(running).status == 503
    events = watch.wait()
    result = next(event for event in events if row(event) == "backendCallResult")
    assert result["severity"] == "error"
    assert result["message"]["status"] is None
    assert "refused" in result["message"]["error"].lower()


def test_every_attempt_of_a_retry_is_told(gateway, upstream) -> None:
    answers = [503, 503, 200]

    def script(connection) -> None:
        stream = connection.makefile("rb")
        while stream.readline():
            while stream.readline() not in (b"\r\n", b""):
                pass
            connection.sendall(b"HTTP/1.1 %d X\r\ncontent-length: 2\r\n\r\nok" % answers.pop(0))

    running = gateway("gateways:\n  default: {port: {port}}\nroutes:\n- policies: {retry: {attempts: 2, codes: [503]}}\n"
                      f"  backends: [{{host: '127.0.0.1:{upstream(script)}'}}]\n")  # fmt: skip
    watch = Watch(running)
    assert ask(running).status == 200
    events = watch.wait()
    assert [event["message"]["status"] for event in events if row(event) == "backendCallResult"] == [503, 503, 200]
    assert rows(events).count("policyEvent retry") == 2
    assert rows(events).count("requestSnapshot final request") == 3


# -- who gets which request -------------------------------------------------------------------------------------------
def test_the_first_watcher_whose_expression_holds_gets_the_request(plain) -> None:
    first = Watch(plain, 'request.path == "/wanted"')
    second, third = Watch(plain), Watch(plain)
    ask(plain, path="/other")
    assert one(second.wait(), "requestSnapshot initial request")["requestState"]["request"]["path"] == "/other"
    assert first.pending
    assert third.pending
    ask(plain, path="/wanted")
    assert rows(first.wait()) == PLAIN
    assert third.pending
    ask(plain, path="/last")
    assert rows(third.wait()) == PLAIN


def test_an_expression_that_fails_does_not_hold(plain) -> None:
    watch = Watch(plain, 'request.headers["absent"] == "x"')
    ask(plain)
    assert watch.pending
    ask(plain, headers={"absent": "x"})
    assert rows(watch.wait()) == PLAIN


@pytest.mark.parametrize("text", ["request.path ==", "nosuchfunction(1)", "1 + " * 5000 + "1"])
def test_a_broken_expression_is_refused(plain, text: str) -> None:
    watch = Watch(plain, text)
    assert watch.status == 400
    assert watch.answer.headers["content-type"] == "text/plain"
    assert watch.answer.read().startswith(b"invalid expression: ")


def test_a_kept_connection_is_traced_for_one_request(plain) -> None:
    watch = Watch(plain)
    connection = http.client.HTTPConnection("127.0.0.1", plain.port, timeout=60)
    for _ in range(2):
        connection.request("GET", "/x")
        connection.getresponse().read()
    events = watch.wait()
    assert rows(events).count("requestStarted") == 1
    assert rows(events) == PLAIN
    connection.close()


def test_the_request_of_a_watcher_that_left_goes_to_the_next(plain) -> None:
    first = Watch(plain)
    second = Watch(plain)
    first.leave()
    wait_for(lambda: watchers(plain) == 1)
    ask(plain)
    assert rows(second.wait()) == PLAIN


def test_many_watchers_get_one_request_each_while_all_workers_are_busy(plain) -> None:
    watches = [Watch(plain) for _ in range(8)]

    def load() -> None:
        for _ in range(10):
            ask(plain)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    traces = [watch.wait() for watch in watches]
    assert [rows(events) for events in traces] == [PLAIN] * 8
    ports = {one(e, "requestSnapshot initial request")["requestState"]["source"]["port"] for e in traces}
    assert len(ports) == 8


def test_there_are_so_many_watchers_and_no_more(plain) -> None:
    watches = [Watch(plain) for _ in range(32)]
    assert [watch.status for watch in watches] == [200] * 32
    assert Watch(plain).status == 503
    watches[0].leave()
    wait_for(lambda: watchers(plain) == 31)
    assert Watch(plain).status == 200


def test_the_stream_shows_that_it_lives(plain) -> None:
    watch = Watch(plain)
    wait_for(lambda: watch.comments)
    assert watch.comments[0] == ": keepalive"
    ask(plain)
    assert rows(watch.wait()) == PLAIN


# -- what it must not do ----------------------------------------------------------------------------------------------
SECRETS = """
apiKey: {keys: [{key: sk-very-secret-key, metadata: {user: me}}]}
transformations:
  request:
    set:
      x-copy: 'request.headers["authorization"]'
      x-part: 'request.headers["authorization"].substring(10)'
backendAuth: {key: backend-secret-value}
"""


def test_no_secret_is_shown(policies) -> None:
    running = policies(SECRETS)
    watch = Watch(running)
    fields = {
        "authorization": "Bearer sk-very-secret-key", "cookie": "session=cookie-secret-value",
        "proxy-authorization": "Basic proxy-secret-value", "x-api-key": "other-secret-value",
    }  # fmt: skip
    answer = ask(running, path="/api/x?access_token=query-secret-value&plain=shown", headers=fields)
    assert answer.got("authorization") == ["Bearer backend-secret-value"]
    events = [event for event in watch.wait() if not row(event).startswith("bodySnapshot")]
    text = json.dumps(events)
    for secret in ("very-secret-key", "cookie-secret", "proxy-secret", "other-secret", "query-secret", "backend-secret"):
        assert secret not in text, next(event for event in events if secret in json.dumps(event))
    assert "plain=shown" in text
    assert "<redacted>" in text


def test_bodies_are_shown_up_to_the_buffer_limit(gateway, echo) -> None:
    running = gateway("gateways:\n  default: {port: {port}}\n"
                      "frontendPolicies: {http: {maxBufferSize: 1000}}\n"
                      f"routes:\n- backends: [{{host: '127.0.0.1:{echo}'}}]\n")  # fmt: skip
    watch = Watch(running)
    answer = ask(running, "POST", body="b" * 5000)
    assert len(answer.seen["body"]) == 5000
    events = watch.wait()
    assert base64.b64decode(one(events, "bodySnapshot final request")["body"]) == b"b" * 1000
    assert base64.b64decode(one(events, "bodySnapshot response")["body"]) == answer.body[:1000]


@pytest.mark.cold
def test_a_watcher_that_does_not_read_slows_nobody_and_loses_events(policies) -> None:
    # One event of some kilobytes for each rule: far more than the queue and all buffers of the way hold.
    rules = [f'request.path == "/{i}"' for i in range(3000)] + ["true"]
    running = policies(f"authorization: {{rules: {json.dumps(rules)}}}")
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", running.admin))
    sock.sendall(b"POST /debug/trace HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n")
    wait_for(lambda: watchers(running) == 1)
    assert ask(running, headers={"x-long": "y" * 5000}).status == 200
    assert ask(running).status == 200
    # What was kept is still there, in order, and the stream ends.
    with sock, sock.makefile("rb") as stream:
        lines = [json.loads(line[6:]) for line in stream if line.startswith(b"data: ")]
    assert rows(lines)[:2] == PLAIN[:2]
    expressions = [event["message"]["expr"] for event in lines if row(event) == "cel"]
    numbers = [int(expression.split("/")[1].strip('"')) for expression in expressions if expression != "true"]
    assert numbers == sorted(numbers)
    assert 0 < len(numbers) < 3000
