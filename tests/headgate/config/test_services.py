"""Services: which workloads are used, and how they are spoken to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from headgate.config.dump import Runtime, dump
from headgate.config.load import FileSource, Loaded, load
from headgate.errors import ConfigErrors
from headgate.ir.backend import ServiceBackend

TEXT = """
gateways: {default: {port: 1}}
routes: [{backends: [{service: {name: n/s.test, port: 80}, policies: POLICIES}]}]
services:
- {name: s, namespace: n, hostname: s.test, ports: {"80": 8080, "81": 8081}, SERVICE}
workloads:
- {uid: a, name: a, namespace: n, workloadIps: [10.0.0.1], locality: eu/1/x, node: n1, services: {n/s.test: {}}}
- {uid: b, name: b, namespace: n, workloadIps: [10.0.0.2], locality: {region: eu, zone: "2"}, services: {n/s.test: {}}}
- {uid: c, name: c, namespace: n, workloadIps: [10.0.0.3], locality: us/1, status: unhealthy, services: {n/s.test: {}}}
- {uid: d, name: d, namespace: n, workloadIps: [10.0.0.4]}
"""


def read(tmp_path: Path, service: str, policies: str = "{}", environ: Mapping[str, str] | None = None) -> Loaded:
    text = TEXT.replace("SERVICE", service or "vips: []").replace("POLICIES", policies)
    (tmp_path / "c.yaml").write_text(text)
    return load(FileSource(str(tmp_path / "c.yaml")), environ=environ or {})


def backend_of(loaded: Loaded) -> ServiceBackend:
    [choice] = loaded.gateway.binds[0].listeners[0].routes[0].backends
    assert isinstance(choice.backend, ServiceBackend)
    return choice.backend


def used(loaded: Loaded) -> str:
    return "".join(one.key for one in backend_of(loaded).endpoints)


HERE = {"LOCALITY": "eu/1/x", "NODE_NAME": "n1"}


@pytest.mark.parametrize(
    ("service", "environ", "expected"),
    [
        ("", HERE, "ab"),
        ("loadBalancer: {healthPolicy: allowAll}", HERE, "abc"),
        ("loadBalancer: {mode: standard, routingPreferences: [region, zone]}", HERE, "ab"),
        ("loadBalancer: {mode: strict, routingPreferences: [region]}", HERE, "ab"),
        ("loadBalancer: {mode: strict, routingPreferences: [region, zone]}", HERE, "a"),
        ("loadBalancer: {mode: strict, routingPreferences: [region, zone, subzone, node]}", HERE, "a"),
        ("loadBalancer: {mode: strict, routingPreferences: [region]}", {"LOCALITY": "us"}, ""),
        ("loadBalancer: {mode: strict, routingPreferences: [region], healthPolicy: allowAll}", {"LOCALITY": "us"}, "c"),
        ("loadBalancer: {mode: failover, routingPreferences: [region, zone]}", HERE, "a"),
        ("loadBalancer: {mode: failover, routingPreferences: [region, zone]}", {"LOCALITY": "eu/2"}, "b"),
        ("loadBalancer: {mode: failover, routingPreferences: [region, zone]}", {"LOCALITY": "eu/3"}, "ab"),
        # The zone `1` of another region is another zone.
        ("loadBalancer: {mode: failover, routingPreferences: [zone]}", {"LOCALITY": "us/1"}, "ab"),
        ("loadBalancer: {mode: failover, routingPreferences: [node]}", HERE, "a"),
        ("endpoints: {x: {workloadUid: d}}", HERE, "abd"),
        ("endpoints: {x: {workloadUid: b, status: unhealthy}}", HERE, "a"),
        ("endpoints: {x: {workloadUid: b, status: unhealthy}}, loadBalancer: {healthPolicy: allowAll}", HERE, "abc"),
    ],
)
def test_workloads_that_are_used(service: str, environ: Mapping[str, str], expected: str, tmp_path: Path) -> None:
    assert used(read(tmp_path, service, environ=environ)) == expected


def test_endpoints_have_ports_of_their_own(tmp_path: Path) -> None:
    loaded = read(tmp_path, 'endpoints: {x: {workloadUid: d, port: {"80": 9999}}, y: {workloadUid: a, port: {"80": 7777}}}')
    ports = {one.key: one.endpoint.port for one in backend_of(loaded).endpoints}
    assert ports == {"a": 7777, "b": 8080, "d": 9999}


@pytest.mark.parametrize(
    ("protocol", "http2"),
    [
        ("http", False), ("HTTP", False), ("http11", False), ("https", False), ("kubernetes.io/ws", False),
        ("http2", True), ("HTTP2", True), ("h2c", True), ("kubernetes.io/h2c", True), ("grpc", True), ("other", None),
    ],
)  # fmt: skip
def test_protocols_of_ports(protocol: str, http2: bool | None, tmp_path: Path) -> None:
    found = backend_of(read(tmp_path, f'appProtocols: {{"80": {protocol}}}'))
    assert {one.endpoint.http2 for one in found.endpoints} == {http2}
    # Of that port alone; and a policy goes first.
    found = backend_of(read(tmp_path, f'appProtocols: {{"81": {protocol}}}'))
    assert {one.endpoint.http2 for one in found.endpoints} == {None}
    found = backend_of(read(tmp_path, f'appProtocols: {{"80": {protocol}}}', "{http: {version: HTTP/1.1}}"))
    assert {one.endpoint.http2 for one in found.endpoints} == {False}


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ("{backendTLS: {}}", ("x.test", "y.test")),
        ("{backendTLS: {subjectAltNames: [z.test]}}", ("z.test",)),
        ("{backendTLS: {insecure: true}}", ()),
        ("{backendTLS: {insecureHost: true}}", ()),
    ],
)
def test_alternative_names(policies: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    found = backend_of(read(tmp_path, "subjectAltNames: [x.test, y.test]", policies))
    for one in found.endpoints:
        assert one.endpoint.tls is not None
        assert one.endpoint.tls.subject_alt_names == expected
    assert all(one.endpoint.tls is None for one in backend_of(read(tmp_path, "subjectAltNames: [x.test]")).endpoints)


@pytest.mark.parametrize(
    ("service", "fault"),
    [
        ("endpoints: {x: {workloadUid: gone}}", "no workload has the uid 'gone'"),
        ("endpoints: {x: {port: {}}}", "workloadUid"),
        ('endpoints: {x: {workloadUid: d, port: {"80": 0}}}', "0 is not a port"),
        ("loadBalancer: {mode: passthrough}", "not supported yet"),
        ("loadBalancer: {mode: strict}", "mode strict needs some"),
        ("loadBalancer: {routingPreferences: [planet]}", "planet"),
        ("waypoint: {hostname: x}", "not supported yet"),
    ],
)
def test_faults(service: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors, match=fault):
        read(tmp_path, service)


def test_a_gateway_that_does_not_know_where_it_is_says_so(tmp_path: Path) -> None:
    [told] = read(tmp_path, "loadBalancer: {mode: strict, routingPreferences: [region, zone, node]}").warnings
    assert "does not know its own region, zone, node: no workload matches there (set LOCALITY, NODE_NAME)" in told


def test_the_dump_shows_it(tmp_path: Path) -> None:
    balancing = "loadBalancer: {mode: strict, routingPreferences: [region]}"
    loaded = read(tmp_path, f"subjectAltNames: [x.test], {balancing}, endpoints: {{x: {{workloadUid: d}}}}", environ=HERE)
    shown = dump(loaded.gateway, Runtime(generation=1, workers=1))
    [service] = shown["services"]
    assert service["subjectAltNames"] == ["x.test"]
    assert service["loadBalancer"] == {"mode": "strict", "routingPreferences": ["region"], "healthPolicy": "onlyHealthy"}
    assert "d" in service["endpoints"][0]["active"]
    assert {one["uid"]: one.get("locality") for one in shown["workloads"]} == {"a": "eu/1/x", "b": "eu/2", "c": "us/1", "d": None}
