"""Policies of traffic from the configuration file to the wire."""

from __future__ import annotations

import contextlib
import http.client
import time

import pytest
from tests.end_to_end.asking import BASE, ask, indented
from tests.end_to_end.tracing import wait_for

pytestmark = pytest.mark.warm

# -- cors and csrf -----------------------------------------------------------------------------------------------------


def test_cors(policies) -> None:
    running = policies("""
cors:
  allowOrigins: ["https://a.example", "https://*.b.example"]
  allowMethods: [GET, POST]
  allowHeaders: ["x-a"]
  exposeHeaders: ["x-e"]
  allowCredentials: true
  maxAge: 10m
""")
    wanted = {"origin": "https://x.b.example", "access-control-request-method": "POST"}
    answer = ask(running, "OPTIONS", headers=wanted)
    assert (answer.status, answer.body) == (200, b"")
    found = {key: value for key, value in answer.headers.items() if key.startswith("access-control")}
    assert found == {
        "access-control-allow-origin": "https://x.b.example",
        "access-control-allow-methods": "GET,POST",
        "access-control-allow-headers": "x-a",
        "access-control-max-age": "600",
        "access-control-allow-credentials": "true",
        "access-control-expose-headers": "x-e",
    }
    stranger = ask(running, "OPTIONS", headers={**wanted, "origin": "https://evil.example"})
    assert stranger.status == 200
    assert "access-control-allow-origin" not in stranger.headers
    real = ask(running, headers={"origin": "https://a.example:443"})
    assert real.headers["access-control-allow-origin"] == "https://a.example:443"
    assert "access-control-allow-origin" not in ask(running, headers={"origin": "null"}).headers
    assert ask(running, "OPTIONS", headers={"origin": "https://a.example"}).seen["method"] == "OPTIONS"


CSRF = [
    ("GET", {"sec-fetch-site": "cross-site"}, 200),
    ("POST", {"sec-fetch-site": "same-origin"}, 200),
    ("POST", {"sec-fetch-site": "none"}, 200),
    ("POST", {"sec-fetch-site": "cross-site"}, 403),
    ("POST", {"sec-fetch-site": "same-site", "origin": "https://b.test"}, 200),
    ("POST", {}, 200),
    ("POST", {"origin": "null"}, 403),
    ("POST", {"origin": "null", "sec-fetch-site": "same-origin"}, 200),
    ("POST", {"origin": "http://a.test"}, 200),
    ("POST", {"origin": "https://b.test:443"}, 200),
    ("POST", {"origin": "http://evil.test"}, 403),
]


def test_csrf(policies) -> None:
    running = policies("csrf: {additionalOrigins: ['https://b.test']}")
    for method, headers, status in CSRF:
        answer = ask(running, method, headers=headers)
        assert answer.status == status, (method, headers)
        if status == 403:
            assert answer.body == b"CSRF validation failed"


# -- where it goes -----------------------------------------------------------------------------------------------------

REWRITES = [
    ("urlRewrite: {path: {full: /new}}", "/api/x?q=1", "/new?q=1", None),
    ("urlRewrite: {path: {prefix: /v2/}}", "/api/x?q=1", "/v2/x?q=1", None),
    ("urlRewrite: {path: {prefix: /}}", "/api/x", "/x", None),
    ("urlRewrite: {path: {prefix: /}}", "/api", "/", None),
    ("urlRewrite: {path: {prefix: /v2}}", "/api", "/v2", None),
    ("urlRewrite: {path: {prefix: /v2/}}", "/api", "/v2/", None),
    ("urlRewrite: {path: {prefix: /v2/}}", "/api/", "/v2/", None),
    ("urlRewrite: {path: {prefix: /v2/}}", "/api?q=1", "/v2/?q=1", None),
    ("urlRewrite: {authority: {full: 'b.test:81'}}", "/api", "/api", "b.test:81"),
    ("urlRewrite: {authority: {host: b.test}}", "/api", "/api", "b.test"),
    ("urlRewrite: {authority: {port: 99}}", "/api", "/api", "a.test:99"),
    ("urlRewrite: {authority: none}", "/api", "/api", "a.test"),
]


@pytest.mark.parametrize(("policy", "path", "target", "host"), REWRITES)
def test_url_rewrite(policies, policy: str, path: str, target: str, host: str | None) -> None:
    answer = ask(policies(policy), path=path)
    assert answer.seen["path"] == target
    if host is not None:
        assert answer.got("host") == [host]


REDIRECTS = [
    ("{scheme: https}", "http://a.test/", 302, "https://a.test/api/x?q=1"),
    ("{authority: {host: b.test}, status: 301}", "", 301, "http://b.test/api/x?q=1"),
    ("{authority: {full: 'b.test:80'}}", "", 302, "http://b.test/api/x?q=1"),
    ("{authority: {port: 8443}, scheme: https}", "", 302, "https://a.test:8443/api/x?q=1"),
    ("{path: {full: /new}, status: 308}", "", 308, "http://a.test/new?q=1"),
    ("{path: {prefix: /v2}}", "", 302, "http://a.test/v2/x?q=1"),
]


@pytest.mark.parametrize(("policy", "_note", "status", "location"), REDIRECTS)
def test_request_redirect(policies, policy: str, _note: str, status: int, location: str) -> None:
    answer = ask(policies(f"requestRedirect: {policy}"), path="/api/x?q=1")
    assert (answer.status, answer.headers["location"], answer.body) == (status, location, b"")


# -- transformations, direct responses, delay ----------------------------------------------------------------------------


def test_transformations(policies) -> None:
    running = policies("""
transformations:
  request:
    metadata: {who: 'request.headers["x-user"]'}
    set: {x-who: metadata.who, ":path": '"/changed" + request.path', x-bad: 'request.headers.nope', x-count: '1 + 1'}
    add: {x-list: '"b"'}
    remove: [x-secret]
    body: 'toJson({"wrapped": json(request.body)})'
  response:
    set: {x-status: string(response.code), x-size: size(response.body)}
    body: 'json(response.body).path'
""")
    headers = {"x-user": "ada", "x-secret": "s", "x-list": "a", "x-bad": "kept", "content-type": "application/json"}
    answer = ask(running, "POST", "/api/x", headers, '{"a": 1}')
    assert (answer.status, answer.body) == (200, b"/changed/api/x")
    assert answer.headers["x-status"] == "200"
    assert int(answer.headers["x-size"]) > 100
    assert answer.headers["content-length"] == str(len(answer.body))


def test_what_a_transformation_sends_on(policies) -> None:
    running = policies("""
transformations:
  request:
    set: {x-who: 'request.headers["x-user"]', x-bad: 'request.headers.nope', x-split: '"a\\r\\nx-evil: 1"'}
    add: {x-list: '"b"'}
    remove: [x-secret]
    body: '"new " + string(request.body)'
""")
    headers = {"x-user": "ada", "x-secret": "s", "x-list": "a", "x-bad": "kept"}
    answer = ask(running, "POST", "/api/x", headers, "body")
    assert answer.seen["body"] == "new body"
    assert answer.got("x-who") == ["ada"]
    assert answer.got("x-bad") == ["kept"]
    assert answer.got("x-split") == answer.got("x-evil") == []
    assert answer.got("x-list") == ["a", "b"]
    assert answer.got("x-secret") == []


@pytest.mark.parametrize("name", ["host", ":authority", "Host"])
def test_a_transformation_sets_the_host(policies, name: str) -> None:
    running = policies(f"""
urlRewrite: {{authority: none}}
transformations: {{request: {{set: {{"{name}": '"tenant-" + request.headers["x-tenant"] + ".test:81"'}}}}}}
""")
    assert ask(running, headers={"x-tenant": "a"}).got("host") == ["tenant-a.test:81"]
    assert ask(running, headers={"x-tenant": "a/b"}).got("host") == ["a.test"]


def test_a_transformation_that_takes_the_body_away(policies) -> None:
    running = policies("""
transformations: {response: {set: {":status": 'int(default(request.headers["x-status"], "200"))'}}}
""")
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)) as connection:
        for status in (204, 200, 304, 204, 404):
            connection.request("GET", "/api/x", headers={"host": "a.test", "x-status": str(status)})
            response = connection.getresponse()
            body = response.read()
            assert (response.status, bool(body)) == (status, status in (200, 404))
            assert (response.headers["content-length"] is None) == (status == 204)


def test_conditional_forms(policies) -> None:
    running = policies("""
transformations:
  conditional:
  - {condition: 'request.path == "/api/a"', request: {set: {x-which: '"a"'}}}
  - {condition: 'jwt.sub == "x"', request: {set: {x-which: '"b"'}}}
""")
    assert ask(running, path="/api/a").got("x-which") == ["a"]
    assert ask(running, path="/api/b").got("x-which") == []


def test_direct_responses_with_expressions(policies) -> None:
    running = policies("""
directResponse:
  conditional:
  - condition: request.method == "POST"
    status: 201
    bodyExpression: '{"path": request.path}'
    headers: {x-host: request.host, x-none: jwt.sub}
  - {condition: 'request.path.endsWith("x")', status: 418, body: teapot}
""")
    answer = ask(running, "POST")
    assert (answer.status, answer.body, answer.headers["x-host"]) == (201, b'{"path":"/api/x"}', "a.test")
    assert "x-none" not in answer.headers
    assert (ask(running).status, ask(running).body) == (418, b"teapot")
    assert ask(running, path="/api/y").seen["path"] == "/api/y"


def test_delay(policies) -> None:
    text = "delay: {duration: 'duration(request.headers[\"x-wait\"])'}\ntimeout: {requestTimeout: LIMIT}"
    running = policies(text.replace("LIMIT", "60s"))
    assert ask(running, headers={"x-wait": "150ms"}).status == 200
    assert ask(running, headers={"x-wait": "nonsense"}).status == 200
    late = ask(policies(text.replace("LIMIT", "300ms")), headers={"x-wait": "600s"})
    assert (late.status, late.body) == (504, b"request timeout")


def test_retry_conditions(gateway, upstream) -> None:
    from tests.end_to_end.retry_rig import Scripted

    script = Scripted((500, b"again"), (200, b"yes"))
    text = BASE % (indented("retry: {codes: [], condition: response.code == 500, precondition: request.method == 'GET'}"),
                   upstream(script))  # fmt: skip
    running = gateway(text)
    assert ask(running).body == b"yes"
    script.answers = [(500, b"again"), (200, b"yes")]
    assert ask(running, "POST", body="x").body == b"again"


def test_policies_of_the_gateway_come_first(gateway, echo) -> None:
    text = f"""
gateways:
  default:
    port: {{port}}
    apiKey: {{keys: [{{key: k}}], location: {{header: {{name: x-key}}}}}}
    authorization: {{rules: [{{deny: 'request.path == "/no"'}}]}}
    transformations: {{request: {{set: {{":path": '"/api" + request.path'}}}}}}
routes:
- matches: [{{path: {{pathPrefix: /api}}}}]
  policies: {{authorization: {{rules: [request.method == "GET"]}}}}
  backends: [{{host: "127.0.0.1:{echo}"}}]
policies:
- name: {{name: late, namespace: n}}
  target: {{gateway: {{gatewayName: default, gatewayNamespace: default}}}}
  policy: {{authorization: {{rules: [{{deny: 'request.path == "/api/late"'}}]}}}}
"""
    running = gateway(text)
    key = {"x-key": "k"}
    assert ask(running, path="/x").status == 401
    assert ask(running, path="/x", headers=key).seen["path"] == "/api/x"
    assert ask(running, path="/no", headers=key).status == 403
    assert ask(running, "POST", path="/x", headers=key).status == 403
    assert ask(running, path="/late", headers=key).status == 403


def test_a_request_has_several_mirrors(gateway, echo, upstream) -> None:
    seen: dict[str, list[bytes]] = {"all": [], "none": [], "more": []}

    def recorder(name: str) -> int:
        def record(connection) -> None:  # type: ignore[no-untyped-def]
            seen[name].append(connection.recv(65536))
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

        return int(upstream(record))

    shares = {"all": 1.0, "none": 0, "more": 1.0}
    entries = ", ".join(f'{{backend: {{host: "127.0.0.1:{recorder(name)}"}}, percentage: {share}}}' for name, share in shares.items())
    running = gateway(BASE % (indented(f"requestMirror: [{entries}]"), echo))
    assert ask(running, "GET", "/api/x").status == 200
    wait_for(lambda: seen["all"] and seen["more"])
    assert {name: [one.split(b" HTTP")[0] for one in heads] for name, heads in seen.items()} == {
        "all": [b"GET /api/x"], "none": [], "more": [b"GET /api/x"],
    }  # fmt: skip


def test_mirrors_get_copies_without_bodies(gateway, echo, upstream) -> None:
    seen: list[bytes] = []

    def record(connection) -> None:  # type: ignore[no-untyped-def]
        stream = connection.makefile("rb")
        while line := stream.readline():
            head = line
            while (line := stream.readline()) not in (b"\r\n", b""):
                head += line
            seen.append(head)
            connection.sendall(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")

    mirror = upstream(record)
    text = f"""
requestMirror: {{backend: {{host: "127.0.0.1:{mirror}"}}, percentage: 1.0}}
requestHeaderModifier: {{set: {{x-from: gate}}}}
"""
    running = gateway(BASE % (indented(text), echo))
    for _ in range(5):
        assert ask(running, "POST", "/api/x?y", body="secret body").seen["body"] == "secret body"
    deadline = time.monotonic() + 40
    while len(seen) < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(seen) == 5
    assert all(head.startswith(b"POST /api/x?y HTTP/1.1") and b"x-from: gate" in head for head in seen)
    assert not any(b"content-length: 11" in head for head in seen)
    nowhere = gateway(BASE % (indented(text.replace(str(mirror), "1")), echo))
    assert ask(nowhere).status == 200
    seen.clear()
    more = f"""
backends:
- {{name: copies, host: "127.0.0.1:{mirror}", policies: {{backendAuth: {{key: copy-key}}}}}}
services: [{{name: s, namespace: n, hostname: s.test, ports: {{80: 1}}}}]
workloads: [{{uid: w, name: w, namespace: n, workloadIps: [127.0.0.1], services: {{n/s.test: {{80: {mirror}}}}}}}]
"""
    for target in ("backend: /copies", "service: {name: n/s.test, port: 80}"):
        policy = f"requestMirror: {{backend: {{{target}}}, percentage: 1.0}}"
        other = gateway(BASE % (indented(policy), echo) + more)
        assert ask(other, headers={"authorization": "Bearer mine"}).got("authorization") == ["Bearer mine"]
        deadline = time.monotonic() + 40
        while not seen and time.monotonic() < deadline:
            time.sleep(0.02)
        sent = b"Bearer copy-key" if "copies" in target else b"Bearer mine"
        assert [sent in head for head in seen] == [True], target
        seen.clear()


def test_rate_limits_with_conditions(policies) -> None:
    running = policies("""
localRateLimit:
  conditional:
  - {condition: 'request.headers["x-plan"] == "free"', maxTokens: 1, tokensPerFill: 1, fillInterval: 1h}
  - {condition: 'request.headers["x-plan"] == "paid"', maxTokens: 3, tokensPerFill: 1, fillInterval: 1h}
""")
    free = [ask(running, headers={"x-plan": "free"}).status for _ in range(3)]
    paid = [ask(running, headers={"x-plan": "paid"}).status for _ in range(5)]
    none = [ask(running).status for _ in range(6)]
    assert free == [200, 429, 429]
    assert paid == [200, 200, 200, 429, 429]
    assert none == [200] * 6


def test_policies_of_a_backend(gateway, echo) -> None:
    text = f"""
gateways:
  default: {{port: {{port}}}}
routes:
- matches: [{{path: {{pathPrefix: /away}}}}]
  backends:
  - {{host: "127.0.0.1:{echo}", policies: {{requestRedirect: {{path: {{full: /there}}, status: 307}}}}}}
- backends:
  - host: "127.0.0.1:{echo}"
    policies:
      authorization: {{rules: [{{deny: 'request.path == "/no"'}}, {{require: 'backend.type == "static"'}}]}}
      transformations:
        request: {{set: {{x-backend: backend.name}}}}
        response: {{set: {{x-size: size(response.body)}}}}
"""
    running = gateway(text)
    assert ask(running, path="/no").status == 403
    answer = ask(running, path="/yes")
    assert answer.got("x-backend") == [f"127.0.0.1:{echo}"]
    assert answer.headers["x-size"] == str(len(answer.body))
    assert ask(running, path="/away/x").headers["location"] == "http://a.test/there"


def test_policies_of_the_llm_section(gateway, sample) -> None:
    port = sample("llm_provider", "--api-key", "upstream")
    text = f"""
gateways:
  default: {{port: {{port}}}}
llm:
  policies:
    apiKey: {{keys: [{{key: k1, metadata: {{team: red}}}}]}}
    authorization: {{rules: ['apiKey.team == "red"']}}
  models:
  - {{name: "*", provider: openai, params: {{baseUrl: "http://127.0.0.1:{port}/v1", apiKey: upstream}}}}
"""
    running = gateway(text)
    body = '{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
    headers = {"content-type": "application/json"}
    assert ask(running, "POST", "/v1/chat/completions", headers, body).status == 401
    answer = ask(running, "POST", "/v1/chat/completions", {**headers, "authorization": "Bearer k1"}, body)
    assert answer.status == 200


def test_functions_of_the_configuration(gateway, echo) -> None:
    text = f"""
config:
  customFunctions: |
    # team of a user
    team(user) {{ user.split(":")[0] }}
    isTeam(name) {{ team(this) == name }}
gateways:
  default: {{port: {{port}}}}
routes:
- policies:
    authorization: {{rules: ['request.headers["x-user"].isTeam("red")']}}
    transformations: {{request: {{set: {{x-team: 'team(request.headers["x-user"])'}}}}}}
  backends: [{{host: "127.0.0.1:{echo}"}}]
"""
    # The harness writes a `config` section of its own: its settings join this one.
    head, _, rest = text.partition("gateways:")
    running = gateway("gateways:" + rest, settings=head.partition("config:")[2])
    assert ask(running, headers={"x-user": "red:ada"}).got("x-team") == ["red"]
    assert ask(running, headers={"x-user": "blue:bob"}).status == 403
