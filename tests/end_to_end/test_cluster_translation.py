"""What the controller's translator makes of manifests, served by a gateway."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from concurrent import futures

import grpc
import httpx
import pytest
from manifests import (
    Json,
    endpoints,
    entries,
    gateway_backend,
    gateway_class,
    grpc_route,
    http_route,
    listener,
    made,
    own,
    service,
    to,
)
from manifests import gateway as gateway_manifest
from tests.end_to_end.ext_authz_rig import GrpcAuthorizer, HttpAuthorizer
from tests.end_to_end.identity_rig import ISSUER, JWKS, token
from tests.end_to_end.running import Gateway

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import everything
from headgate.cluster.translate.fragments import assembled
from headgate.document.write import write

pytestmark = pytest.mark.warm

# Stands for the port that a gateway is given.
PORT = 64_999


def configuration(*documents: Json) -> str:
    world = everything(Snapshot.of([gateway_class(), *documents]), {})
    text = write(assembled(world.gateways[ObjectKey("edge", "main")]))
    return text.replace(f"port: {PORT}", "port: {port}")


def redirect(**fields: object) -> Json:
    return {"filters": [{"type": "RequestRedirect", "requestRedirect": fields}]}


def path(value: str, kind: str = "PathPrefix") -> Json:
    return {"matches": [{"path": {"type": kind, "value": value}}]}


@pytest.fixture
def served(gateway: Callable[..., Gateway], echo: int) -> Callable[..., Callable[..., httpx.Response]]:
    def start(*documents: Json) -> Callable[..., httpx.Response]:
        known = [service(), endpoints("shop/cart-1", "cart", ["127.0.0.1"], echo), gateway_manifest(listener(port=PORT))]
        running = gateway(configuration(*known, *documents))

        def ask(target: str, host: str = "cart.test", **headers: str) -> httpx.Response:
            return httpx.get(f"http://127.0.0.1:{running.port}{target}", headers={"host": host, **headers})

        return ask

    return start


def test_a_route_leads_to_the_endpoints_of_its_service(served: Callable[..., Callable[..., httpx.Response]]) -> None:
    edit = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x-added", "value": "1"}]}}
    ask = served(http_route("shop/cart", {**path("/cart"), "filters": [edit], "backendRefs": [to()]}, hostnames=("cart.test",)))
    answer = ask("/cart/1")
    assert answer.status_code == 200
    assert answer.json()["path"] == "/cart/1"
    assert ["x-added", "1"] in answer.json()["headers"]
    assert ask("/other").status_code == 404
    assert ask("/cart", host="pay.test").status_code == 404


def test_what_leads_nowhere_is_500(served: Callable[..., Callable[..., httpx.Response]]) -> None:
    ask = served(
        http_route(
            "shop/cart", {**path("/gone"), "backendRefs": [to("gone")]}, {**path("/far"), "backendRefs": [to(namespace="store")]},
            {**path("/empty"), "backendRefs": []}, {**path("/none"), "backendRefs": [to(weight=0)]},
        ),
        service("store/cart"),
    )  # fmt: skip
    assert {target: ask(target).status_code for target in ("/gone", "/far", "/empty", "/none", "/x")} == {
        "/gone": 500, "/far": 500, "/empty": 500, "/none": 500, "/x": 404,
    }  # fmt: skip


def test_a_service_without_endpoints_is_503(served: Callable[..., Callable[..., httpx.Response]]) -> None:
    ask = served(http_route("shop/cart", {"backendRefs": [to("idle")]}), service("shop/idle"))
    assert ask("/").status_code == 503


def test_of_routes_that_match_alike_the_older_one_serves(served: Callable[..., Callable[..., httpx.Response]]) -> None:
    def named(name: str, created: str, *more: Json) -> Json:
        edit = {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"set": [{"name": "x-route", "value": name}]}}
        return http_route(f"shop/{name}", {**path("/a"), "filters": [edit], "backendRefs": [to()]}, *more, creationTimestamp=created)

    exact = {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"set": [{"name": "x-route", "value": "exact"}]}}
    rule = {**path("/a/b", "Exact"), "filters": [exact], "backendRefs": [to()]}
    ask = served(named("a", "2026-01-02T00:00:00Z", rule), named("c", "2026-01-01T00:00:00Z"), named("b", "2026-01-01T00:00:00Z"))
    assert ask("/a").headers["x-route"] == "b"
    assert ask("/a/b").headers["x-route"] == "exact"


def test_redirects_name_the_port_of_the_listener_unless_another_is_said(served: Callable[..., Callable[..., httpx.Response]]) -> None:
    ask = served(
        http_route(
            "shop/cart",
            {**path("/plain"), **redirect(path={"type": "ReplaceFullPath", "replaceFullPath": "/x"})},
            {**path("/tls"), **redirect(scheme="https", statusCode=301)},
            {**path("/host"), **redirect(hostname="pay.test", port=8443, path={"type": "ReplacePrefixMatch", "replacePrefixMatch": "/y"})},
        )
    )
    port = ask("/").request.url.port
    found = {target: ask(target) for target in ("/plain", "/tls/a?b=1", "/host/a")}
    assert {target: (answer.status_code, answer.headers["location"]) for target, answer in found.items()} == {
        "/plain": (302, f"http://cart.test:{port}/x"),
        "/tls/a?b=1": (301, "https://cart.test/tls/a?b=1"),
        "/host/a": (302, "http://pay.test:8443/y/a"),
    }


def policy(name: str, kind: str, target: str, traffic: Json) -> Json:
    reference = {"group": "gateway.networking.k8s.io", "kind": kind, "name": target}
    return made("GatewayPolicy", name, {"targetRefs": [reference], "traffic": traffic}, "headgate.dev/v1alpha1")


def test_policies_hold_at_their_targets(served: Callable[..., Callable[..., httpx.Response]]) -> None:
    deny = {"authorization": {"action": "Deny", "policy": {"matchExpressions": ["request.path == '/open/secret'"]}}}
    header = {"headerModifiers": {"response": {"set": [{"name": "x-policy", "value": "1"}]}}}
    limit = {"rateLimit": {"local": [{"requests": 1, "unit": "Hours"}]}}
    ask = served(
        http_route("shop/open", {**path("/open"), "backendRefs": [to()]}),
        http_route("shop/shut", {**path("/shut"), "backendRefs": [to()]}),
        http_route("shop/few", {**path("/few"), "backendRefs": [to()]}),
        policy("edge/deny", "Gateway", "main", {"phase": "PreRouting", **deny}),
        policy("shop/header", "HTTPRoute", "open", header),
        policy("shop/login", "HTTPRoute", "shut", {"jwtAuthentication": {"providers": []}}),
        policy("shop/limit", "HTTPRoute", "few", limit),
    )
    assert (ask("/open").status_code, ask("/open").headers["x-policy"]) == (200, "1")
    assert ask("/open/secret").status_code == 403
    # What protects and cannot be translated yet lets nobody pass.
    assert ask("/shut").status_code == 403
    assert [ask("/few").status_code for _ in range(2)] == [200, 429]
    assert "x-policy" not in ask("/few").headers


def test_clients_are_known_by_keys_passwords_and_tokens(served: Callable[..., Callable[..., httpx.Response]]) -> None:
    provider = {"issuer": ISSUER, "audiences": ["api"], "jwks": {"inline": JWKS}}
    logins = {
        "keys": {"apiKeyAuthentication": {"secretRef": {"name": "keys"}, "location": {"header": {"name": "x-key"}}}},
        "words": {"basicAuthentication": {"secretRef": {"name": "users"}}},
        "tokens": {"jwtAuthentication": {"providers": [provider]}},
    }
    # The password is "secret": {SHA} is what htpasswd -s writes.
    users = {".htaccess": "ann:{SHA}" + base64.b64encode(hashlib.sha1(b"secret").digest()).decode()}
    ask = served(
        entries("Secret", "shop/keys", app="key-1"), entries("Secret", "shop/users", **users),
        *(http_route(f"shop/{name}", {**path(f"/{name}"), "backendRefs": [to()]}) for name in logins),
        *(policy(f"shop/{name}", "HTTPRoute", name, traffic) for name, traffic in logins.items()),
    )  # fmt: skip
    assert {name: ask(f"/{name}").status_code for name in logins} == dict.fromkeys(logins, 401)
    assert ask("/keys", **{"x-key": "key-1"}).status_code == 200
    assert ask("/keys", **{"x-key": "key-2"}).status_code == 401
    basic = base64.b64encode(b"ann:secret").decode()
    assert ask("/words", authorization=f"Basic {basic}").status_code == 200
    assert ask("/tokens", authorization=f"Bearer {token()}").status_code == 200
    assert ask("/tokens", authorization=f"Bearer {token(aud='other')}").status_code == 401


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_service_of_the_cluster_decides(served: Callable[..., Callable[..., httpx.Response]], protocol: str) -> None:
    judge = GrpcAuthorizer() if protocol == "grpc" else HttpAuthorizer()
    reference = {"backendRef": to("judge", namespace="store"), protocol: {}}
    try:
        ask = served(
            service("store/judge"), endpoints("store/judge-1", "judge", ["127.0.0.1"], judge.port),
            http_route("shop/asked", {**path("/asked"), "backendRefs": [to()]}),
            http_route("shop/free", {**path("/free"), "backendRefs": [to()]}),
            policy("shop/ask", "HTTPRoute", "asked", {"extAuth": reference}),
        )  # fmt: skip
        assert (ask("/asked").status_code, len(judge.seen)) == (200, 1)
        judge.status = 403
        judge.react = lambda _question: {"status": {"code": 7}, "denied_response": {"status": {"code": "Forbidden"}}}
        assert (ask("/asked").status_code, len(judge.seen)) == (403, 2)
        assert (ask("/free").status_code, len(judge.seen)) == (200, 2)
    finally:
        judge.stop()


def test_own_backends_are_called_with_their_credentials(served: Callable[..., Callable[..., httpx.Response]], echo: int) -> None:
    place = {"static": {"host": "127.0.0.1", "port": echo}}
    ask = served(
        entries("Secret", "shop/key", Authorization="first$HOME"),
        gateway_backend("shop/named", **place, policies={"auth": {"secretRef": {"name": "key"}}}),
        gateway_backend("shop/lost", **place, policies={"auth": {"secretRef": {"name": "gone"}}}),
        gateway_backend("shop/any", dynamicForwardProxy={"allowedRanges": ["127.0.0.1/32"], "allowedPorts": [echo]}),
        http_route("shop/named", {**path("/named"), "backendRefs": [own("named")]}),
        http_route("shop/lost", {**path("/lost"), "backendRefs": [own("lost")]}),
        http_route("shop/any", {**path("/any"), "backendRefs": [own("any")]}),
    )
    answer = ask("/named")
    assert (answer.status_code, ["authorization", "Bearer first$HOME"] in answer.json()["headers"]) == (200, True)
    # What cannot have its credentials is not called without them.
    assert ask("/lost").status_code == 500
    assert ask("/any", host=f"127.0.0.1:{echo}").json()["path"] == "/any"
    assert ask("/any", host="127.0.0.2:1").status_code != 200


@pytest.fixture
def calls() -> Iterator[int]:
    """Return the port of a server of gRPC that answers any call with what it was asked for."""

    class Any(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
            return grpc.unary_unary_rpc_method_handler(lambda request, _context: details.method.encode() + request)

    server = grpc.server(futures.ThreadPoolExecutor(2), handlers=(Any(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    server.stop(None).wait()


def test_calls_of_grpc_are_told_apart_by_their_methods(gateway: Callable[..., Gateway], calls: int) -> None:
    def rule(*backends: Json, **method: str) -> Json:
        return {"matches": [{"method": method}], "backendRefs": list(backends)}

    running = gateway(
        configuration(
            gateway_manifest(listener(port=PORT)), service("shop/calls"), endpoints("shop/calls-1", "calls", ["127.0.0.1"], calls),
            grpc_route(
                "shop/calls", rule(to("calls"), service="shop.Cart", method="Add"), rule(to("calls"), service="shop.Pay"),
                rule(to("calls"), type="RegularExpression", service="[a-z]+[.]Store", method="(Get|Put)"), rule(service="shop.Empty"),
                rule(to("gone", weight=3), to("calls", weight=0), service="shop.Lost"), rule(to("gone", weight=0), to("calls"), service="shop.Kept"),
            ),
        )
    )  # fmt: skip

    def call(method: str) -> bytes | grpc.StatusCode:
        with grpc.insecure_channel(f"127.0.0.1:{running.port}") as channel:
            try:
                return bytes(channel.unary_unary(method)(b"!", timeout=60))
            except grpc.RpcError as error:
                return error.code()

    for method in ("/shop.Cart/Add", "/shop.Pay/Any", "/far.Store/Put"):
        assert call(method) == method.encode() + b"!"
    for method in ("/shop.Cart/Drop", "/shop.Payer/Any", "/far.Store/Put2", "/Far.Store/Put"):
        assert call(method) == grpc.StatusCode.UNIMPLEMENTED
    assert call("/shop.Empty/Any") == grpc.StatusCode.UNAVAILABLE
    assert call("/shop.Lost/Any") == grpc.StatusCode.UNAVAILABLE
    assert call("/shop.Kept/Any") == b"/shop.Kept/Any!"
