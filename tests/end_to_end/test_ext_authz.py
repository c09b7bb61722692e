"""`extAuthz`: a service over gRPC or HTTP decides, and what it says holds."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end import over_http2
from tests.end_to_end.ext_authz_rig import GrpcAuthorizer, HttpAuthorizer, shown

pytestmark = pytest.mark.warm

ROUTE = """
gateways:
  default: {{port: {{port}}}}
routes:
- name: guarded
  policies:
    extAuthz: {policy}
  backends:
  - host: 127.0.0.1:{backend}
"""


@pytest.fixture
def authorizer() -> Iterator[GrpcAuthorizer]:
    found = GrpcAuthorizer()
    yield found
    found.stop()


@pytest.fixture
def service() -> Iterator[HttpAuthorizer]:
    found = HttpAuthorizer()
    yield found
    found.stop()


@pytest.fixture
def backend() -> Iterator[HttpAuthorizer]:
    found = HttpAuthorizer()
    found.body = b"from the backend"
    found.fields = [("x-kind", "backend"), ("x-both", "backend")]
    yield found
    found.stop()


def config(backend: HttpAuthorizer, **policy: Any) -> str:
    return ROUTE.format(policy=shown(policy), backend=backend.port)


# The default of 200 ms is short for a service in the process of the tests.
PATIENT = {"policies": {"http": {"requestTimeout": "30s"}}}


def grpc_policy(authorizer: GrpcAuthorizer, **more: Any) -> dict[str, Any]:
    return {"host": f"127.0.0.1:{authorizer.port}", **PATIENT, **more}


def http_policy(service: HttpAuthorizer, more: dict[str, Any] | None = None, **policy: Any) -> dict[str, Any]:
    return {"host": f"127.0.0.1:{service.port}", "protocol": {"http": more or {}}, **PATIENT, **policy}


def test_the_service_sees_the_request(gateway: Any, authorizer: GrpcAuthorizer, backend: HttpAuthorizer) -> None:
    policy = grpc_policy(
        authorizer,
        protocol={"grpc": {"context": {"tenant": "a"}, "metadata": {"own": "{'path': request.path}", "bad": "jwt.sub"}}},
        includeRequestBody={"maxRequestBytes": 100},
    )
    running = gateway(config(backend, **policy))
    fields = [("X-Twice", "1"), ("x-twice", "2"), ("cookie", "a=1"), ("x-request-id", "id-1")]
    answer = httpx.post(f"{running.url}/p/a?q=1", headers=fields, content=b"hello")
    assert (answer.status_code, answer.text) == (200, "from the backend")
    [question] = authorizer.seen
    attributes = question["attributes"]
    seen = attributes["request"]["http"]
    assert (seen["id"], seen["method"], seen["path"], seen["scheme"], seen["protocol"]) == (
        "id-1", "POST", "/p/a?q=1", "http", "HTTP/2" if over_http2.WANTED else "HTTP/1.1",
    )  # fmt: skip
    assert seen["host"] == f"127.0.0.1:{running.port}" == seen["headers"][":authority"]
    assert (seen["headers"]["x-twice"], seen["headers"]["cookie"]) == ("1, 2", "a=1")
    assert (seen["headers"][":method"], seen["headers"][":path"]) == ("POST", "/p/a?q=1")
    assert (seen["body"], seen["size"], seen["headers"]["x-envoy-auth-partial-body"]) == ("hello", "5", "false")
    assert attributes["source"]["address"]["socket_address"]["address"] == "127.0.0.1"
    assert attributes["destination"]["address"]["socket_address"]["port_value"] == running.port
    assert attributes["context_extensions"] == {"tenant": "a"}
    assert attributes["metadata_context"]["filter_metadata"] == {"own": {"path": "/p/a"}}
    assert attributes["request"]["time"].startswith("20")


def test_an_allowed_request_is_changed(gateway: Any, authorizer: GrpcAuthorizer, backend: HttpAuthorizer) -> None:
    text = config(backend, **grpc_policy(authorizer)).replace(
        "    extAuthz:", "    transformations: {request: {set: {x-told: 'extauthz.user + extauthz.more.n'}}}\n    extAuthz:"
    )
    running = gateway(text)
    authorizer.react = lambda question: {
        "ok_response": {
            "headers": [
                {"header": {"key": "X-User", "value": "ann"}},
                {"header": {"key": "x-twice", "value": "2"}, "append": True},
                {"header": {"key": "x-raw", "raw_value": "YmluYXJ5"}},
                {"header": {"key": "x-absent", "value": "new"}, "append_action": "ADD_IF_ABSENT"},
                {"header": {"key": "x-there", "value": "other"}, "append_action": "ADD_IF_ABSENT"},
                {"header": {"key": "x-nowhere", "value": "never"}, "append_action": "OVERWRITE_IF_EXISTS"},
                {"header": {"key": "content-length", "value": "999"}},
                {"header": {"key": "x-split", "value": "a\r\nx-evil: 1"}},
                {"header": {"key": ":path", "value": "/changed?a=1&b=2&c=3"}},
            ],
            "headers_to_remove": ["X-Secret", "host", ":method"],
            "query_parameters_to_set": [{"key": "b", "value": "new value"}],
            "query_parameters_to_remove": ["c"],
            "response_headers_to_add": [
                {"header": {"key": "x-both", "value": "service"}},
                {"header": {"key": "x-kind", "value": "service"}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"},
                {"header": {"key": "set-cookie", "value": "s=1"}},
            ],
        },
        "dynamic_metadata": {"user": "ann", "more": {"n": "1"}},
    }
    answer = httpx.get(running.url + "/", headers=[("x-twice", "1"), ("x-there", "old"), ("x-secret", "s")])
    assert answer.status_code == 200
    [seen] = backend.seen
    assert seen.target == "/changed?a=1&b=new+value"
    assert (seen.fields["x-user"], seen.fields["x-raw"], seen.fields["x-absent"], seen.fields["x-there"]) == (
        "ann", "binary", "new", "old",
    )  # fmt: skip
    assert seen.fields["x-told"] == "ann1"
    assert not {"x-secret", "x-nowhere", "content-length", "x-split", "x-evil"} & set(seen.fields)
    assert (answer.headers.get_list("x-both"), answer.headers.get_list("x-kind")) == (["backend", "service"], ["service"])
    assert answer.headers["set-cookie"] == "s=1"


def test_refusals(gateway: Any, authorizer: GrpcAuthorizer, backend: HttpAuthorizer) -> None:
    running = gateway(config(backend, **grpc_policy(authorizer)))
    authorizer.react = lambda question: {
        "status": {"code": 16},
        "denied_response": {
            "status": {"code": 401},
            "headers": [{"header": {"key": "www-authenticate", "value": "Basic"}}],
            "body": "who are you?",
        },
    }
    answer = httpx.get(running.url)
    assert (answer.status_code, answer.text, answer.headers["www-authenticate"]) == (401, "who are you?", "Basic")
    authorizer.react = lambda question: {"status": {"code": 7}}
    answer = httpx.get(running.url)
    assert (answer.status_code, answer.text) == (403, "external authorization failed")
    assert backend.seen == []
    assert running.metric('gw_requests_total{') == 2
    running.wait_log("ExtAuth")


@pytest.mark.parametrize(("mode", "status"), [("deny", 403), ("allow", 200), ({"denyWithStatus": 503}, 503)])
def test_a_service_that_fails(
    gateway: Any, authorizer: GrpcAuthorizer, backend: HttpAuthorizer, mode: Any, status: int
) -> None:
    running = gateway(config(backend, **grpc_policy(authorizer, failureMode=mode)))
    authorizer.react = lambda question: b"\xff\xff"  # type: ignore[assignment,return-value]
    answer = httpx.get(running.url)
    assert answer.status_code == status
    authorizer.stop()
    answer = httpx.get(running.url)
    assert answer.status_code == status
    if status != 200:
        assert answer.text == "external authorization failed"
    authorizer.__init__()  # type: ignore[misc]


def test_a_service_that_does_not_answer(gateway: Any, backend: HttpAuthorizer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        policy = {"host": f"127.0.0.1:{silent.getsockname()[1]}", "policies": {"http": {"requestTimeout": "100ms"}}}
        running = gateway(config(backend, **policy))
        assert httpx.get(running.url, timeout=30).status_code == 403
        running.reload(config(backend, **policy, protocol={"http": {}}, failureMode="allow"))
        assert httpx.get(running.url, timeout=30).status_code == 200


def test_bodies(gateway: Any, authorizer: GrpcAuthorizer, backend: HttpAuthorizer) -> None:
    running = gateway(config(backend, **grpc_policy(authorizer, includeRequestBody={"maxRequestBytes": 10})))
    answer = httpx.post(running.url, content=b"x" * 11)
    assert (answer.status_code, answer.text, authorizer.seen) == (413, "external authorization failed", [])
    more = {"maxRequestBytes": 10, "allowPartialMessage": True, "packAsBytes": True}
    running.reload(config(backend, **grpc_policy(authorizer, includeRequestBody=more)))
    answer = httpx.post(running.url, content=b"y" * 100_000)
    assert answer.status_code == 200
    seen = authorizer.seen[-1]["attributes"]["request"]["http"]
    assert (seen["raw_body"], seen["headers"]["x-envoy-auth-partial-body"]) == ("eXl5eXl5eXl5eQ==", "true")
    assert backend.seen[-1].body == "y" * 100_000


def test_only_some_headers_are_sent(gateway: Any, authorizer: GrpcAuthorizer, backend: HttpAuthorizer) -> None:
    running = gateway(config(backend, **grpc_policy(authorizer, includeRequestHeaders=["X-A", ":path"])))
    httpx.get(running.url + "/p", headers={"x-a": "1", "x-b": "2"})
    assert authorizer.seen[0]["attributes"]["request"]["http"]["headers"] == {"x-a": "1", ":path": "/p"}


def test_decisions_are_kept(gateway: Any, authorizer: GrpcAuthorizer, backend: HttpAuthorizer) -> None:
    cache = {"key": ["request.headers['x-user']"], "ttl": "duration(extauthz.ttl)"}
    running = gateway(config(backend, **grpc_policy(authorizer, cache=cache)))

    def react(question: dict[str, Any]) -> dict[str, Any]:
        user = question["attributes"]["request"]["http"]["headers"].get("x-user")
        found: dict[str, Any] = {"dynamic_metadata": {"ttl": "0s" if user == "short" else "600s"}}
        return found if user != "bad" else {**found, "status": {"code": 7}}

    authorizer.react = react
    for user, status, calls in (("ann", 200, 1), ("bob", 200, 1), ("bad", 403, 1), ("short", 200, 2), (None, 200, 2)):
        authorizer.seen.clear()
        for _ in range(2):
            answer = httpx.get(running.url, headers={} if user is None else {"x-user": user})
            assert answer.status_code == status
        assert len(authorizer.seen) == calls, user


def test_policies_of_the_service(gateway: Any, authorizer: GrpcAuthorizer, backend: HttpAuthorizer) -> None:
    policies = {
        "backendAuth": {"key": "k-1"},
        "requestHeaderModifier": {"set": {"x-own": "1"}},
        "transformations": {"request": {"set": {"x-path": "'/' + request.headers['x-own']"}}},
    }
    running = gateway(config(backend, **grpc_policy(authorizer, policies=policies)))
    assert httpx.get(running.url).status_code == 200
    [fields] = authorizer.fields
    assert (fields["authorization"], fields["x-own"]) == ("Bearer k-1", "1")
    assert "k-1" not in httpx.get(f"http://127.0.0.1:{running.admin}/config_dump").text


def test_conditions_and_levels(gateway: Any, authorizer: GrpcAuthorizer, backend: HttpAuthorizer) -> None:
    target = f"127.0.0.1:{authorizer.port}"
    text = f"""
    gateways:
      default:
        port: {{port}}
        extAuthz:
          conditional:
          - {{condition: "request.path == '/gateway'", host: "{target}", protocol: {{grpc: {{context: {{at: gateway}}}}}}}}
    routes:
    - name: a
      policies:
        extAuthz:
          conditional:
          - {{condition: "request.path == '/route'", host: "{target}", protocol: {{grpc: {{context: {{at: route}}}}}}}}
      backends:
      - host: 127.0.0.1:{backend.port}
        policies:
          extAuthz: {{host: "{target}", protocol: {{grpc: {{context: {{at: backend}}}}}}}}
    """
    running = gateway(text)
    for path, places in (("/gateway", ["gateway", "backend"]), ("/route", ["route", "backend"]), ("/", ["backend"])):
        authorizer.seen.clear()
        assert httpx.get(running.url + path).status_code == 200
        assert [one["attributes"]["context_extensions"]["at"] for one in authorizer.seen] == places


def test_http_allows(gateway: Any, service: HttpAuthorizer, backend: HttpAuthorizer) -> None:
    options = {
        "path": "'/check' + request.path",
        "addRequestHeaders": {"x-method": "request.method", "x-none": "jwt.sub"},
        "includeResponseHeaders": ["X-User"],
        "metadata": {"more": "response.headers['x-more']", "code": "response.code", "none": "response.headers['x-no']"},
    }
    text = config(backend, **http_policy(service, options, includeRequestHeaders=["x-a"])).replace(
        "    extAuthz:", "    transformations: {request: {set: {x-told: 'extauthz.more + string(extauthz.code)'}}}\n    extAuthz:"
    )
    running = gateway(text)
    service.fields = [("x-user", "ann"), ("x-user", "bob"), ("x-more", "1")]
    answer = httpx.post(running.url + "/p?q=1", headers={"x-a": "1", "x-user": "evil"}, content=b"body")
    assert (answer.status_code, answer.text) == (200, "from the backend")
    [asked] = service.seen
    assert (asked.method, asked.target, asked.body) == ("POST", "/check/p", "")
    assert (asked.fields["x-a"], asked.fields["x-method"]) == ("1", "POST")
    assert not {"x-none", "x-user", "authorization"} & set(asked.fields)
    assert asked.fields["host"] == f"127.0.0.1:{service.port}"
    [seen] = backend.seen
    assert (seen.fields["x-user"], seen.fields["x-told"], seen.body) == ("ann, bob", "1200", "body")
    assert "x-more" not in seen.fields


def test_http_refuses(gateway: Any, service: HttpAuthorizer, backend: HttpAuthorizer) -> None:
    running = gateway(config(backend, **http_policy(service)))
    service.fields, service.body = [("x-why", "because"), ("connection", "x-why")], b"no"
    for status in (204, 401, 403, 500):
        service.status, service.body = status, b"" if status == 204 else b"no"
        answer = httpx.get(running.url, headers={"authorization": "Bearer t"})
        assert (answer.status_code, answer.text) == (status, "" if status == 204 else "no")
    assert service.seen[0].fields["authorization"] == "Bearer t"
    assert backend.seen == []
    running.reload(config(backend, **http_policy(service, {"redirect": "'https://login.test/?to=' + request.path"})))
    service.status = 401
    answer = httpx.get(running.url + "/p")
    assert (answer.status_code, answer.headers["location"]) == (302, "https://login.test/?to=/p")
    service.status = 500
    assert httpx.get(running.url + "/p").status_code == 500


def test_http_bodies(gateway: Any, service: HttpAuthorizer, backend: HttpAuthorizer) -> None:
    running = gateway(config(backend, **http_policy(service, {"body": "{'path': request.path}"})))
    assert httpx.get(running.url + "/p").status_code == 200
    assert service.seen[-1].body == '{"path":"/p"}'
    limit = {"maxRequestBytes": 4, "allowPartialMessage": True}
    running.reload(config(backend, **http_policy(service, includeRequestBody=limit)))
    assert httpx.post(running.url, content=b"whole body").status_code == 200
    assert (service.seen[-1].body, service.seen[-1].fields["x-envoy-auth-partial-body"]) == ("whol", "true")
    assert backend.seen[-1].body == "whole body"


def test_expressions_that_fail_refuse(gateway: Any, service: HttpAuthorizer, backend: HttpAuthorizer) -> None:
    for options in ({"path": "jwt.sub"}, {"path": "'no slash'"}, {"body": "jwt.sub"}):
        running = gateway(config(backend, **http_policy(service, options)))
        assert httpx.get(running.url).status_code == 403
    assert (service.seen, backend.seen) == ([], [])


def test_many_at_once(gateway: Any, authorizer: GrpcAuthorizer, backend: HttpAuthorizer) -> None:
    running = gateway(config(backend, **grpc_policy(authorizer)), workers=2)
    authorizer.react = lambda question: (
        {} if question["attributes"]["request"]["http"]["path"] == "/yes" else {"status": {"code": 7}}
    )
    wrong: list[tuple[str, int]] = []

    def client() -> None:
        with httpx.Client(timeout=60) as own:
            for number in range(20):
                path, status = (("/yes", 200), ("/no", 403))[number % 2]
                found = own.get(running.url + path).status_code
                if found != status:
                    wrong.append((path, found))

    threads = [threading.Thread(target=client) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_named_backend_is_guarded_wherever_its_service_stands(
    gateway: Any, authorizer: GrpcAuthorizer, backend: HttpAuthorizer
) -> None:
    policies = f"{{extAuthz: {shown({'backend': 'authz'})}}}"
    running = gateway(f"""
        gateways: {{default: {{port: {{port}}}}}}
        routes: [{{backends: [{{backend: guarded}}]}}]
        backends:
        - {{name: guarded, host: "127.0.0.1:{backend.port}", policies: {policies}}}
        - {{name: authz, host: "127.0.0.1:{authorizer.port}"}}
    """)
    assert httpx.get(running.url, timeout=60).status_code == 200
    assert len(authorizer.seen) == 1
    authorizer.react = lambda question: {"denied_response": {}, "status": {"code": 7}}
    assert httpx.get(running.url, timeout=60).status_code == 403
    assert len(backend.seen) == 1
