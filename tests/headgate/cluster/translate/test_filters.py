"""Filters as policies of the file."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import Json, http_route, service, to

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.filters import FilterReader

CART = {"service": {"name": "shop/cart.shop.svc.cluster.local", "port": 8080}}


def reader(port: int = 8000) -> FilterReader:
    return FilterReader(Snapshot.of([service()]), http_route(), port)


def redirect(**fields: Any) -> list[Json]:
    return [{"type": "RequestRedirect", "requestRedirect": fields}]


def mirror(**fields: Any) -> list[Json]:
    return [{"type": "RequestMirror", "requestMirror": {"backendRef": to(), **fields}}]


@pytest.mark.parametrize(
    ("filters", "policies"),
    [
        (
            [{"type": "RequestHeaderModifier", "requestHeaderModifier": {
                "set": [{"name": "X-A", "value": "1"}, {"name": "x-a", "value": "2"}], "add": [{"name": "b", "value": "3"}], "remove": ["c"]}}],
            {"requestHeaderModifier": {"set": {"X-A": "1"}, "add": {"b": "3"}, "remove": ["c"]}},
        ),
        (
            [{"type": "ResponseHeaderModifier", "responseHeaderModifier": {"remove": ["c"]}}],
            {"responseHeaderModifier": {"remove": ["c"]}},
        ),
        (redirect(), {"requestRedirect": {"status": 302, "authority": {"port": 8000}}}),
        (redirect(hostname="a.test", statusCode=301), {"requestRedirect": {"status": 301, "authority": {"full": "a.test:8000"}}}),
        (redirect(scheme="https"), {"requestRedirect": {"status": 302, "scheme": "https", "authority": {"port": 443}}}),
        (redirect(scheme="https", port=8443, hostname="a"), {"requestRedirect": {"status": 302, "scheme": "https", "authority": {"full": "a:8443"}}}),
        (
            redirect(port=81, path={"type": "ReplaceFullPath", "replaceFullPath": "/x"}),
            {"requestRedirect": {"status": 302, "authority": {"port": 81}, "path": {"full": "/x"}}},
        ),
        (
            [{"type": "URLRewrite", "urlRewrite": {"hostname": "a.test", "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": ""}}}],
            {"urlRewrite": {"authority": {"full": "a.test"}, "path": {"prefix": "/"}}},
        ),
        (mirror(), {"requestMirror": {"backend": CART, "percentage": 1.0}}),
        (mirror(percent=0), {"requestMirror": {"backend": CART, "percentage": 0.0}}),
        (mirror(percent=20), {"requestMirror": {"backend": CART, "percentage": 0.2}}),
        (mirror(fraction={"numerator": 1, "denominator": 4}), {"requestMirror": {"backend": CART, "percentage": 0.25}}),
        (mirror(fraction={"numerator": 5}), {"requestMirror": {"backend": CART, "percentage": 0.05}}),
        (
            [{"type": "CORS", "cors": {"allowOrigins": ["https://a.test"], "allowCredentials": True}}],
            {"cors": {"allowOrigins": ["https://a.test"], "allowCredentials": True, "maxAge": "5s"}},
        ),
    ],
)  # fmt: skip
def test_filters_are_policies(filters: list[Json], policies: Json) -> None:
    found = reader()
    assert found.read(filters) == policies
    assert (found.invalid, found.unresolved) == ([], [])


def test_without_a_filter_that_there_is_not_nothing_passes() -> None:
    found = reader()
    filters = [{"type": "ExtensionRef", "extensionRef": {"group": "other.test", "kind": "Filter", "name": name}} for name in "ab"]
    assert found.read([*filters, *redirect()]) == {"directResponse": {"status": 500}}
    assert found.invalid == []
    assert [one.reason for one in found.unresolved] == ["InvalidKind", "InvalidKind"]
    assert "kind Filter of group 'other.test' is no filter" in found.unresolved[0].message


def asking(protocol: str, **more: Any) -> list[Json]:
    return [{"type": "ExternalAuth", "externalAuth": {"protocol": protocol, "backendRef": to(), **more}}]


@pytest.mark.parametrize(
    ("filters", "policy"),
    [
        (asking("GRPC"), {"protocol": {"grpc": {}}}),
        (asking("GRPC", grpc={"allowedHeaders": ["x-a"]}), {"protocol": {"grpc": {}}, "includeRequestHeaders": ["x-a"]}),
        (asking("HTTP", http={"path": "/ask/"}), {"protocol": {"http": {"path": '"/ask" + request.pathAndQuery'}}}),
        (
            asking("HTTP", http={"allowedHeaders": ["x-a"], "allowedResponseHeaders": ["x-b"]}, forwardBody={"maxSize": 9}),
            {
                "protocol": {"http": {"includeResponseHeaders": ["x-b"]}}, "includeRequestHeaders": ["x-a"],
                "includeRequestBody": {"maxRequestBytes": 9, "allowPartialMessage": False},
            },
        ),
    ],
)  # fmt: skip
def test_a_service_is_asked_about_requests(filters: list[Json], policy: Json) -> None:
    found = reader()
    assert found.read(filters) == {"extAuthz": {**CART, "failureMode": "deny", **policy}}
    assert (found.invalid, found.unresolved, found.used) == ([], [], [ObjectKey("shop", "cart")])


def test_a_service_that_cannot_be_asked_lets_nobody_pass() -> None:
    found = reader()
    assert found.read(asking("GRPC", backendRef=to("gone"))) == {"authorization": {"rules": [{"deny": "true"}]}}
    assert [one.reason for one in found.unresolved] == ["BackendNotFound"]


def test_each_mirror_has_a_share_of_its_own() -> None:
    found = reader()
    assert found.read([*mirror(percent=10), *mirror()]) == {
        "requestMirror": [{"backend": CART, "percentage": 0.1}, {"backend": CART, "percentage": 1.0}],
    }
    assert found.invalid == []


def test_a_mirror_uses_its_service_and_one_to_nowhere_is_told() -> None:
    found = reader()
    found.read(mirror())
    assert found.used == [ObjectKey("shop", "cart")]
    found.read([{"type": "RequestMirror", "requestMirror": {"backendRef": to("gone")}}])
    assert [one.reason for one in found.unresolved] == ["BackendNotFound"]


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        ([*redirect(), {"type": "URLRewrite", "urlRewrite": {"hostname": "a"}}], "IncompatibleFilters"),
        ([{"type": "Unheard"}], "UnsupportedValue"),
        (redirect() * 2, "UnsupportedValue"),
    ],
)
def test_what_cannot_be_done_is_told(filters: list[Json], reason: str) -> None:
    found = reader()
    found.read(filters)
    assert [one.reason for one in found.invalid] == [reason]
