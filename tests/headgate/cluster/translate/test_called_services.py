"""Services that policies call."""

from __future__ import annotations

import re

import pytest
from manifests import Json, gateway_backend, own, service, to

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.called_services import ServiceReader

SNAPSHOT = Snapshot.of([
    service("shop/judge"), service("store/judge"), gateway_backend(), gateway_backend("shop/model", ai={"provider": {"openai": {}}}),
])  # fmt: skip
REF = {"backendRef": to("judge")}
JUDGE = {"service": {"name": "shop/judge.shop.svc.cluster.local", "port": 8080}}


@pytest.fixture
def reader() -> ServiceReader:
    return ServiceReader(SNAPSHOT, "shop")


@pytest.mark.parametrize(
    ("value", "ours"),
    [
        ({**REF, "grpc": {}}, {**JUDGE, "failureMode": "deny", "protocol": {"grpc": {}}}),
        (
            {**REF, "failureMode": "FailOpen", "grpc": {"contextExtensions": {"a": "b"}, "requestMetadata": {"c": "'d'"}}},
            {**JUDGE, "failureMode": "allow", "protocol": {"grpc": {"context": {"a": "b"}, "metadata": {"c": "'d'"}}}},
        ),
        (
            {
                "url": "https://a.test/", "forwardBody": {"maxSize": "4Ki"}, "cache": {"key": ["request.path"], "ttl": "'1m'"},
                "http": {"path": "'/x'", "allowedRequestHeaders": ["cookie"], "allowedResponseHeaders": ["x-user"], "responseMetadata": {"m": "'1'"},
                         "addRequestHeaders": {"x-a": "'b'"}},
            },
            {
                "host": "https://a.test", "failureMode": "deny", "includeRequestHeaders": ["cookie"], "cache": {"key": ["request.path"], "ttl": "'1m'"},
                "includeRequestBody": {"maxRequestBytes": 4096, "allowPartialMessage": False},
                "protocol": {"http": {"path": "'/x'", "includeResponseHeaders": ["x-user"], "metadata": {"m": "'1'"}, "addRequestHeaders": {"x-a": "'b'"}}},
            },
        ),
    ],
)  # fmt: skip
def test_authorization(reader: ServiceReader, value: Json, ours: Json) -> None:
    assert reader.authorization(value) == ours


def test_processing(reader: ServiceReader) -> None:
    options = {"requestBodyMode": "Buffered", "allowModeOverride": True}
    said = {"failureMode": "FailOpen", "processingOptions": options, "requestAttributes": {"a": "'b'"}}
    assert reader.processing({**REF, **said}) == {**JUDGE, **said}


def test_limits(reader: ServiceReader) -> None:
    descriptors = [
        {"entries": [{"name": "user", "expression": "'u'"}], "unit": "Tokens", "cost": "2", "limitOverride": "9"},
        {"entries": [{"name": "path", "expression": "request.path"}]},
    ]
    assert reader.limit({**REF, "domain": "shop", "descriptors": descriptors, "failureMode": "FailOpen"}) == {
        **JUDGE, "domain": "shop", "failureMode": "FailOpen",
        "descriptors": [
            {"entries": [{"key": "user", "value": "'u'"}], "type": "Tokens", "cost": "2", "limitOverride": "9"},
            {"entries": [{"key": "path", "value": "request.path"}]},
        ],
    }  # fmt: skip


def test_what_is_called_is_noted(reader: ServiceReader) -> None:
    reader.processing(REF)
    # Only routes need a ReferenceGrant.
    assert reader.processing({"backendRef": to("judge", namespace="store")})["service"]["name"] == "store/judge.store.svc.cluster.local"
    assert reader.processing({"backendRef": own("away")}) == {"backend": "shop/away"}
    assert reader.used == {ObjectKey("shop", "judge"), ObjectKey("store", "judge")}
    assert reader.backends == {ObjectKey("shop", "away")}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"backendRef": to("gone")}, "Service shop/gone not found"),
        ({"backendRef": to("judge", port=1)}, "Service shop/judge has no port 1"),
        ({"backendRef": own("model")}, "GatewayBackend shop/model is not static"),
        ({"backendRef": own("pool", "Pool")}, "Pool of group 'headgate.dev' is not supported"),
        ({"backendRef": {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "pool"}}, "InferencePool pool: a policy cannot call one"),
        ({"url": "http://a.test/check"}, "a path in url is not supported yet"),
    ],
)
def test_what_cannot_be_called_is_told(reader: ServiceReader, value: Json, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        reader.processing(value)
