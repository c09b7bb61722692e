"""HTTPRoutes with filters of backends, mirrors and routes below them, as the controller's translator writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from manifests import Json, endpoints, gateway_backend, gateway_class, http_route, listener, own, service, to
from manifests import gateway as gateway_manifest
from tests.end_to_end.ext_authz_rig import GrpcAuthorizer, HttpAuthorizer
from tests.end_to_end.running import Gateway
from tests.end_to_end.tracing import wait_for

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import everything
from headgate.cluster.translate.fragments import assembled
from headgate.document.write import write

pytestmark = pytest.mark.warm

# Stands for the port that a gateway is given.
PORT = 64_999
Ask = Callable[..., httpx.Response]


@pytest.fixture
def served(gateway: Callable[..., Gateway], echo: int) -> Callable[..., Ask]:
    def start(*documents: Json) -> Ask:
        known = [gateway_class(), gateway_manifest(listener(port=PORT)), service(), endpoints("shop/cart-1", "cart", ["127.0.0.1"], echo)]
        world = everything(Snapshot.of([*known, *documents]), {})
        text = write(assembled(world.gateways[ObjectKey("edge", "main")]))
        running = gateway(text.replace(f"port: {PORT}", "port: {port}"))

        def ask(target: str, method: str = "GET", **headers: str) -> httpx.Response:
            return httpx.request(method, f"http://127.0.0.1:{running.port}{target}", headers={"host": "cart.test", **headers})

        return ask

    return start


def rule(prefix: str, *filters: Json, **more: Any) -> Json:
    return {"matches": [{"path": {"type": "PathPrefix", "value": prefix}}], "backendRefs": [to(filters=list(filters))], **more}


def rewrite(**fields: Any) -> Json:
    return {"type": "URLRewrite", "urlRewrite": fields}


def test_a_url_is_rewritten_for_one_backend(served: Callable[..., Ask]) -> None:
    def prefix(value: str) -> Json:
        return rewrite(path={"type": "ReplacePrefixMatch", "replacePrefixMatch": value})

    ask = served(
        http_route(
            "shop/cart", rule("/one", prefix("/two")), rule("/gone", prefix("/")), rule("/host", rewrite(hostname="inside.test")),
            rule("/full", rewrite(path={"type": "ReplaceFullPath", "replaceFullPath": "/whole"})),
        )
    )  # fmt: skip
    wanted = {
        "/one": "/two", "/one/x?a=/one": "/two/x?a=/one", "/one?q": "/two?q", "/gone": "/", "/gone/x": "/x", "/gone?q": "/?q",
        "/full/x?a=b": "/whole?a=b", "/host/x": "/host/x",
    }  # fmt: skip
    assert {target: ask(target).json()["path"] for target in wanted} == wanted
    assert ["host", "inside.test"] in ask("/host").json()["headers"]
    assert ["host", "cart.test"] in ask("/one").json()["headers"]


def test_one_backend_redirects_and_edits_headers(served: Callable[..., Ask]) -> None:
    redirect = {"type": "RequestRedirect", "requestRedirect": {"hostname": "other.test", "statusCode": 307}}
    added = [{"name": "x-seen", "value": "1"}]
    edits = [
        {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": added}}, {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"add": added}},
    ]  # fmt: skip
    ask = served(http_route("shop/cart", rule("/away", redirect), rule("/edited", *edits)))
    answer = ask("/away/x")
    assert answer.status_code == 307
    assert answer.headers["location"].startswith("http://other.test")
    assert answer.headers["location"].endswith("/away/x")
    answer = ask("/edited")
    assert answer.headers["x-seen"] == "1"
    assert ["x-seen", "1"] in answer.json()["headers"]


def test_a_rule_and_its_only_backend_have_mirrors(served: Callable[..., Ask], upstream: Callable[..., int]) -> None:
    seen: dict[str, list[bytes]] = {name: [] for name in ("first", "second", "third", "none")}

    def mirrored(name: str, **share: Any) -> tuple[list[Json], Json]:
        def record(connection: Any) -> None:
            seen[name].append(connection.recv(65536))
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

        objects = [service(f"shop/{name}"), endpoints(f"shop/{name}-1", name, ["127.0.0.1"], upstream(record))]
        return objects, {"type": "RequestMirror", "requestMirror": {"backendRef": to(name), **share}}

    first, second, third = mirrored("first"), mirrored("second", percent=100), mirrored("third", fraction={"numerator": 1, "denominator": 1})
    none = mirrored("none", percent=0)
    ask = served(
        http_route("shop/cart", rule("/several", filters=[first[1], second[1], none[1]]), rule("/backend", third[1])),
        *first[0], *second[0], *third[0], *none[0],
    )  # fmt: skip
    assert ask("/several?a").json()["path"] == "/several?a"
    assert ask("/backend").status_code == 200
    wait_for(lambda: all(seen[name] for name in ("first", "second", "third")))
    assert {name: [one.split(b" ")[1] for one in found] for name, found in seen.items()} == {
        "first": [b"/several?a"], "second": [b"/several?a"], "third": [b"/backend"], "none": [],
    }  # fmt: skip


def test_one_of_several_backends_has_a_mirror(served: Callable[..., Ask], upstream: Callable[..., int]) -> None:
    seen: list[bytes] = []

    def record(connection: Any) -> None:
        seen.append(connection.recv(65536))
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

    objects = [service("shop/copy"), endpoints("shop/copy-1", "copy", ["127.0.0.1"], upstream(record))]
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": to("copy")}}
    edit = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x-side", "value": "a"}]}}
    whole = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x-all", "value": "1"}]}}
    backends = [to(weight=1, filters=[mirror, edit]), to(weight=0)]
    other = [to(weight=0, filters=[mirror, edit]), to(weight=1)]
    matches = {name: [{"path": {"type": "PathPrefix", "value": f"/{name}"}}] for name in ("on", "off")}
    route = http_route(
        "shop/cart", {"matches": matches["on"], "backendRefs": backends, "filters": [whole]},
        {"matches": matches["off"], "backendRefs": other, "filters": [whole]},
    )  # fmt: skip
    ask = served(route, *objects)
    found = [ask("/off/x").json(), ask("/on/x?a").json()]
    sides = [{name: value for name, value in one["headers"] if name.startswith("x-")} for one in found]
    assert sides == [{"x-all": "1"}, {"x-all": "1", "x-side": "a"}]
    assert found[1]["path"] == "/on/x?a"
    wait_for(lambda: seen)
    assert [one.split(b" ")[1] for one in seen] == [b"/on/x?a"]


def test_a_rule_that_replaces_a_prefix_has_a_mirror_of_one_of_its_backends(
    served: Callable[..., Ask], upstream: Callable[..., int]
) -> None:
    seen: list[bytes] = []

    def record(connection: Any) -> None:
        seen.append(connection.recv(65536))
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

    objects = [service("shop/copy"), endpoints("shop/copy-1", "copy", ["127.0.0.1"], upstream(record))]
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": to("copy")}}
    replaced = rewrite(path={"type": "ReplacePrefixMatch", "replacePrefixMatch": "/two"})
    one = {
        "matches": [{"path": {"type": "PathPrefix", "value": "/one"}}],
        "backendRefs": [to(weight=1, filters=[mirror]), to(weight=0)],
        "filters": [replaced],
    }
    ask = served(http_route("shop/cart", one), *objects)
    assert ask("/one/x?a").json()["path"] == "/two/x?a"
    wait_for(lambda: seen)
    assert [each.split(b" ")[1] for each in seen] == [b"/two/x?a"]


def test_a_rewrite_of_a_backend_that_has_edits_of_its_own(served: Callable[..., Ask], echo: int) -> None:
    edits = {"transformation": {"request": {"set": [{"name": "x-own", "value": "'1'"}]}}}
    edited = gateway_backend("shop/edited", static={"host": "127.0.0.1", "port": echo}, policies=edits)
    replaced = rewrite(path={"type": "ReplacePrefixMatch", "replacePrefixMatch": "/two"}, hostname="inside.test")
    alone = {**rule("/alone"), "backendRefs": [own("edited", filters=[replaced])]}
    several = {**rule("/several"), "backendRefs": [own("edited", weight=1, filters=[replaced]), to(weight=0)]}
    ask = served(http_route("shop/cart", alone, several), edited)
    for target in ("/alone", "/several"):
        found = ask(f"{target}/x?a").json()
        assert found["path"] == "/two/x?a"
        assert [value for name, value in found["headers"] if name in ("host", "x-own")] == ["inside.test", "1"]


def test_routes_below_a_route_have_its_filters_and_their_own(served: Callable[..., Ask]) -> None:
    def marked(name: str) -> Json:
        return {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": name, "value": "1"}]}}

    routes = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "team=a"}
    above = {"kind": "HTTPRoute", "name": "top"}
    ask = served(
        http_route("shop/top", {**rule("/shop"), "backendRefs": [routes], "filters": [marked("x-top")]}),
        http_route("shop/one", rule("/shop/one", filters=[marked("x-one")]), parent=above, labels={"team": "a"}),
        http_route("shop/two", rule("/shop/two"), rule("/other"), parent=above, labels={"team": "a"}),
        http_route("shop/three", rule("/shop/three"), parent=above, labels={"team": "b"}),
    )
    one, two = ask("/shop/one/x"), ask("/shop/two")
    assert (one.status_code, two.status_code) == (200, 200)
    # What a route below says of one kind takes the place of what stands above.
    assert [name in dict(one.json()["headers"]) for name in ("x-top", "x-one")] == [False, True]
    assert "x-top" in dict(two.json()["headers"])
    assert [ask(target).status_code for target in ("/shop/three", "/shop", "/other", "/none")] == [404, 404, 404, 404]


@pytest.mark.parametrize("protocol", ["GRPC", "HTTP"])
def test_a_service_decides_about_requests_of_a_rule(served: Callable[..., Ask], protocol: str) -> None:
    judge = GrpcAuthorizer() if protocol == "GRPC" else HttpAuthorizer()
    said = {"protocol": protocol, "backendRef": to("judge"), protocol.lower(): {}}
    lost = said | {"backendRef": to("gone")}
    try:
        ask = served(
            service("shop/judge"), endpoints("shop/judge-1", "judge", ["127.0.0.1"], judge.port),
            http_route(
                "shop/cart", rule("/asked", filters=[{"type": "ExternalAuth", "externalAuth": said}]), rule("/free"),
                rule("/lost", filters=[{"type": "ExternalAuth", "externalAuth": lost}]),
            ),
        )  # fmt: skip
        assert (ask("/asked").status_code, len(judge.seen)) == (200, 1)
        judge.status = 403
        judge.react = lambda _question: {"status": {"code": 7}, "denied_response": {"status": {"code": "Forbidden"}}}
        assert (ask("/asked").status_code, ask("/free").status_code, ask("/lost").status_code) == (403, 200, 403)
        assert len(judge.seen) == 2
    finally:
        judge.stop()


def test_cors_time_outs_and_retries(served: Callable[..., Ask], upstream: Callable[..., int]) -> None:
    asked: list[bytes] = []

    def fails_once(connection: Any) -> None:
        asked.append(connection.recv(65536))
        status = b"503 No" if len(asked) == 1 else b"200 OK"
        connection.sendall(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

    def silent(connection: Any) -> None:
        while connection.recv(65536):
            pass

    places = {"flaky": upstream(fails_once), "silent": upstream(silent)}
    cors = {"type": "CORS", "cors": {"allowOrigins": ["https://a.test"], "allowMethods": ["PUT"], "maxAge": 9}}
    ask = served(
        http_route(
            "shop/cart", rule("/cors", filters=[cors]),
            {**rule("/flaky"), "backendRefs": [to("flaky")], "retry": {"attempts": 1, "codes": [503]}},
            {**rule("/request"), "backendRefs": [to("silent")], "timeouts": {"request": "200ms"}},
            {**rule("/backend"), "backendRefs": [to("silent")], "timeouts": {"backendRequest": "200ms"}, "retry": {"attempts": 1}},
        ),
        *(one for name, port in places.items() for one in (service(f"shop/{name}"), endpoints(f"shop/{name}-1", name, ["127.0.0.1"], port))),
    )  # fmt: skip
    preflight = ask("/cors", "OPTIONS", origin="https://a.test", **{"access-control-request-method": "PUT"})
    assert (preflight.headers["access-control-allow-origin"], preflight.headers["access-control-max-age"]) == ("https://a.test", "9")
    assert "access-control-allow-origin" not in ask("/cors", origin="https://b.test").headers
    assert (ask("/flaky").status_code, len(asked)) == (200, 2)
    assert [ask(target).status_code for target in ("/request", "/backend")] == [504, 504]
