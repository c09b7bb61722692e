"""`frontend` of a GatewayPolicy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from manifests import Json, gateway, gateway_class, http_route, listener, made, service, to

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.client_side import REFUSED, SHARED, client_side
from headgate.cluster.translate.everything import everything
from headgate.cluster.translate.fragments import assembled
from headgate.config.load import TextSource, load
from headgate.ir.frontend import Frontend

ADD = [{"name": "who", "expression": "jwt.sub"}]
CASES: list[tuple[str, Json, Json]] = [
    ("tcp", {"keepalive": {"time": "7s"}}, {"keepalives": {"enabled": True, "time": "7s"}}),
    (
        "tls",
        {"handshakeTimeout": "1s", "minProtocolVersion": "1.2", "maxProtocolVersion": "1.3", "alpnProtocols": ["h2"],
         "cipherSuites": ["TLS13_AES_256_GCM_SHA384"], "keyExchangeGroups": ["X25519"]},
        {"handshakeTimeout": "1s", "minVersion": "TLS_V1_2", "maxVersion": "TLS_V1_3", "alpn": [[104, 50]],
         "cipherSuites": ["TLS13_AES_256_GCM_SHA384"], "keyExchangeGroups": ["X25519"]},
    ),
    ("http", {"http1HeaderCase": "Preserve", "http1MaxHeaders": 9}, {"http1HeaderCase": "Preserve", "http1MaxHeaders": 9}),
    (
        "networkAuthorization", {"action": "Deny", "policy": {"matchExpressions": ["source.port == 1"]}},
        {"rules": [{"deny": "source.port == 1"}]},
    ),
    ("proxyProtocol", {"mode": "Strict", "version": "V2"}, {"mode": "Strict", "version": "V2"}),
    ("connect", {"mode": "Tunnel"}, {"mode": "Tunnel"}),
    (
        "accessLog",
        {"filter": "true", "attributes": {"add": ADD, "remove": ["a"]},
         "otlp": {"url": "http://logs.test/v1/logs", "protocol": "HTTP", "filter": "true", "attributes": {"add": ADD}}},
        {"filter": "true", "add": {"who": "jwt.sub"}, "remove": ["a"],
         "otlp": {"host": "http://logs.test", "path": "/v1/logs", "protocol": "http", "filter": "true",
                  "fields": {"add": {"who": "jwt.sub"}}}},
    ),
    (
        "tracing",
        {"backendRef": to("cart"), "protocol": "GRPC", "attributes": {"add": ADD, "remove": ["a"]}, "randomSampling": "true",
         "clientSampling": "true", "resources": [{"name": "x", "expression": "'y'"}], "filter": "true"},
        {"service": {"name": "shop/cart.shop.svc.cluster.local", "port": 8080}, "protocol": "grpc", "filter": "true",
         "attributes": {"who": "jwt.sub"}, "remove": ["a"], "resources": {"x": "'y'"}, "randomSampling": "true",
         "clientSampling": "true"},
    ),
]  # fmt: skip
FILE = {"gatewayName": "default", "gatewayNamespace": "default"}
CLUSTER = [gateway_class(), gateway(), service(), http_route()]


@pytest.mark.parametrize(("name", "section", "ours"), CASES, ids=[one[0] for one in CASES])
def test_parts_are_those_of_the_file(name: str, section: Json, ours: Json) -> None:
    found = client_side(Snapshot.of(CLUSTER), "shop", {name: section})
    assert (found.found, found.faults) == ({name: ours}, [])


def attached(target: Json, name: str = "edge/front", created: str = "2026-01-01T00:00:00Z", **frontend: Any) -> Json:
    reference = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "main", **target}
    content = {"targetRefs": [reference], "frontend": frontend}
    return made("GatewayPolicy", name, content, "headgate.dev/v1alpha1", creationTimestamp=created)


def translated(*documents: Json) -> tuple[list[Json], Any, dict[str, str]]:
    """Return the policies of the file, its settings, and by policy the message of Accepted."""
    world = everything(Snapshot.of([*CLUSTER, *documents]), {})
    file = assembled(world.gateways[ObjectKey("edge", "main")])
    told = {
        one.key.name: one.content["ancestors"][0]["conditions"][0]["message"]
        for one in world.statuses if one.kind.kind == "GatewayPolicy"
    }  # fmt: skip
    return file.get("policies", []), load(TextSource(json.dumps(file))).gateway.frontend, told


def test_a_policy_of_a_gateway_is_that_of_its_file() -> None:
    parts = {name: section for name, section, _ in CASES if name not in ("accessLog", "tracing")}
    _, settings, told = translated(attached({}, **parts))
    assert (settings.connect, settings.http1_max_headers, settings.tls_handshake_timeout_ms) == ("tunnel", 9, 1000)
    assert settings.network_authorization.deny == ("source.port == 1",)
    assert told == {"front": "Policy accepted"}


def test_of_two_the_older_one_holds() -> None:
    new = attached({}, "edge/a", "2026-02-01T00:00:00Z", connect={"mode": "Route"})
    _, settings, told = translated(new, attached({}, "edge/b", connect={"mode": "Tunnel"}))
    assert settings.connect == "tunnel"
    assert told["a"] == "connect of Gateway edge/main is that of the older policy edge/b"


@pytest.mark.parametrize(
    ("target", "said", "words"),
    [
        ({"sectionName": "web"}, {"http": {"http1MaxHeaders": 9}}, "frontend.http is for a whole Gateway or a port"),
        ({"port": 80}, {"connect": {"mode": "Route"}}, "route is for the whole gateway"),
        ({"port": 80}, {"http": {"maxBufferSize": 5}}, "is for the whole gateway, not for one port"),
    ],
)
def test_what_cannot_be_said_of_a_part_of_a_gateway_is_told(target: Json, said: Json, words: str) -> None:
    entries, settings, told = translated(attached(target, **said))
    assert (entries, settings) == ([], Frontend())
    assert words in told["front"]


def test_what_is_said_of_a_port() -> None:
    entries, settings, _ = translated(attached({"port": 80}, connect={"mode": "Tunnel"}, proxyProtocol={"version": "V1"}))
    assert [(one["target"], *one["frontend"]) for one in entries] == [
        ({"gateway": {**FILE, "port": 80}}, "connect"), ({"gateway": {**FILE, "port": 80}}, "proxyProtocol"),
    ]  # fmt: skip
    assert settings == Frontend()


def test_a_port_and_a_listener_that_has_it_for_itself_have_logs_and_spans_of_their_own() -> None:
    log, spans = ({name: section for name, section, _ in CASES}[name] for name in ("accessLog", "tracing"))
    whole = attached({}, "edge/whole", accessLog={"filter": "false"})
    port = attached({"port": 80}, "edge/port", accessLog={"filter": "1 == 2"}, tracing=spans)
    listener_ = attached({"sectionName": "web"}, "edge/web", "2026-02-01T00:00:00Z", accessLog=log)
    world = everything(Snapshot.of([*CLUSTER, service("edge/cart"), whole, port, listener_]), {})
    file = assembled(world.gateways[ObjectKey("edge", "main")])
    found = load(TextSource(json.dumps(file))).gateway
    own = found.binds[0].frontend
    assert (found.frontend.access_log.filter, found.frontend.tracing) == ("false", None)
    # What is said of the listener comes before what is said of its port.
    assert own is not None
    assert (own.access_log.filter, own.access_log.add) == ("true", (("who", "jwt.sub"),))
    assert own.tracing is not None
    told = [one.content["ancestors"][0]["conditions"][0]["message"] for one in world.statuses if one.kind.kind == "GatewayPolicy"]
    assert told == ["Policy accepted"] * 3


def test_rules_of_connections_that_cannot_be_said_let_nobody_in() -> None:
    rules = {"policy": {"matchExpressions": ["true"]}}
    entries, _, told = translated(attached({"port": 81}, networkAuthorization=rules))
    assert (entries, "not attached" in told["front"]) == ([], True)
    _, settings, told = translated(attached({}, networkAuthorization={"policy": {"matchExpressions": ["1 +"]}}))
    assert settings.network_authorization.deny == ("true",)
    assert "frontend.networkAuthorization cannot be in force" in told["front"]


def test_metrics_are_told() -> None:
    _, _, told = translated(attached({}, metrics={"attributes": {"add": ADD}}))
    assert told["front"] == f"frontend.metrics is refused: {REFUSED['metrics', '']}"


@pytest.mark.parametrize(("part", "about"), REFUSED)
def test_what_is_refused_is_told_with_its_reason(part: str, about: str) -> None:
    said = {name: section for name, section, _ in CASES} | {"metrics": {"attributes": {"add": ADD}}}
    target = {"": {}, SHARED: {"sectionName": "web"}}[about]
    both = gateway(listener(), listener("api", hostname="api.test"))
    entries, _, told = translated(attached(target, **{part: said[part]}), service("edge/cart"), both)
    assert REFUSED[part, about] in told["front"]
    assert entries == []
