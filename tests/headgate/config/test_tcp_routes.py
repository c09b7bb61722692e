"""`tcpRoutes`: listeners, hosts, and the policies that mean something."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from headgate.ir.backend import HostBackend, MissingBackend, ServiceBackend
from headgate.ir.gateway import Gateway


def test_routes_go_to_the_listeners_that_carry_no_http(loaded: Callable[..., Gateway], certificates: Any) -> None:
    tls = f"{{cert: {certificates.folder}/a.crt, key: {certificates.folder}/a.key}}"
    gateway = loaded(f"""
gateways:
  default: {{port: 1, protocol: TCP}}
  web: {{port: 2}}
  secure: {{port: 3, listeners: [{{name: p, hostname: p.test, protocol: TLS}}, {{name: e, hostname: e.test, protocol: TLS, tls: {tls}}}]}}
routes: [{{gateways: web, backends: [{{host: "a:1"}}]}}]
tcpRoutes:
- {{name: db, backends: [{{host: "db:5432", weight: 2}}, {{backend: other}}]}}
- {{name: names, gateways: [secure/p, secure/e], hostnames: ["*.TEST", p.test], backends: [{{host: "s:1"}}]}}
backends: [{{name: other, host: "o:1", policies: {{health: {{}}}}}}]
""")
    plain, web, secure = gateway.binds
    assert (plain.tls, web.tls, secure.tls) == (False, False, True)
    [route] = plain.listeners[0].tcp_routes
    assert (route.key, route.hostnames) == ("default/db", ())
    assert [choice.weight for choice in route.backends] == [2, 1]
    first, second = (choice.backend for choice in route.backends)
    assert isinstance(first, HostBackend)
    assert isinstance(second, HostBackend)
    assert (first.endpoint.tcp, first.endpoint.pool_key) == (True, "http://db:5432#tcp")
    assert second.name == "/other"
    assert route.backends[1].policies.health is not None
    passed, ended = secure.listeners
    assert passed.tls is None
    assert ended.tls is not None
    assert ended.tls.alpn == ()
    assert passed.tcp_routes == ended.tcp_routes
    assert passed.tcp_routes[0].hostnames == ("*.test", "p.test")
    assert not web.listeners[0].tcp_routes


def test_tls_to_the_backend_and_services(loaded: Callable[..., Gateway]) -> None:
    gateway = loaded("""
binds:
- port: 1
  listeners:
  - protocol: TCP
    tcpRoutes:
    - policies: {backendTLS: {hostname: x.test}}
      backends: [{host: "a:1"}, {service: {name: ns/s.test, port: 1}, policies: {backendTLS: {insecure: true}}}, {backend: gone}]
services: [{name: s, namespace: ns, hostname: s.test, ports: {"1": 2}, appProtocols: {"1": http2}}]
workloads: [{uid: w, name: w, namespace: ns, workloadIps: [10.0.0.1], services: {ns/s.test: {}}}]
""")
    host, service, gone = (choice.backend for choice in gateway.binds[0].listeners[0].tcp_routes[0].backends)
    assert isinstance(host, HostBackend)
    assert isinstance(service, ServiceBackend)
    assert isinstance(gone, MissingBackend)
    assert host.endpoint.tls is not None
    assert host.endpoint.tls.hostname == "x.test"
    [place] = service.endpoints
    assert place.endpoint.tls is not None
    assert place.endpoint.tls.insecure
    assert (place.endpoint.tcp, place.endpoint.http2, place.endpoint.address) == (True, None, "10.0.0.1:2")


@pytest.mark.parametrize(("protocol", "wrapped"), [("TCP", True), ("TLS", False)])
def test_what_is_said_of_a_service_wraps_no_tls_of_clients(loaded: Callable[..., Gateway], protocol: str, wrapped: bool) -> None:
    gateway = loaded(f"""
binds: [{{port: 1, listeners: [{{protocol: {protocol}, tcpRoutes: [{{backends: [{{service: {{name: ns/s.test, port: 1}}}}]}}]}}]}}]
services: [{{name: s, namespace: ns, hostname: s.test, ports: {{"1": 2}}}}]
workloads: [{{uid: w, name: w, namespace: ns, workloadIps: [10.0.0.1], services: {{ns/s.test: {{}}}}}}]
policies:
- name: {{name: tls, namespace: ns}}
  target: {{backend: {{service: {{hostname: s.test, namespace: ns}}}}}}
  policy: {{backendTLS: {{hostname: x.test}}}}
""")
    service = gateway.binds[0].listeners[0].tcp_routes[0].backends[0].backend
    assert isinstance(service, ServiceBackend)
    assert (service.endpoints[0].endpoint.tls is not None) is wrapped


G = "gateways: {default: {port: 1, protocol: TCP}}\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (G + "tcpRoutes: [{backends: [{host: 'a:1'}]}, {name: b}]", "tcpRoutes route0 and b of listener default both have the host *"),
        (G + "tcpRoutes: [{hostnames: [a.test]}]", "protocol TCP has no host names"),
        (G + "tcpRoutes: [{gateways: other}]", "unknown gateway reference other"),
        ("gateways: {g: {port: 1}}\ntcpRoutes: [{gateways: g}]", "gateway reference g has no TCP listeners"),
        ("gateways: {g: {port: 1, protocol: TCP}}\nroutes: [{gateways: g}]", "gateway reference g has no HTTP listeners"),
        (G + "routes: [{name: r}]", "routes.r must set gateways"),
        ("gateways: {default: {port: 1}}\ntcpRoutes: [{name: r}]", "tcpRoutes.r must set gateways"),
        ("gateways: {g: {port: 1, protocol: TCP, tls: {cert: a, key: b}}}", "protocol TCP cannot set tls"),
        ("gateways: {g: {port: 1, listeners: [{hostname: a.test, protocol: TCP}]}}", "protocol TCP has no host names"),
        (
            "gateways: {g: {port: 1, listeners: [{protocol: TCP}, {name: b}]}}",
            "gateway listeners on port 1 cannot mix HTTP and TCP protocols",
        ),
        (
            "gateways: {g: {port: 1, listeners: [{protocol: TCP}, {protocol: TCP, name: b}]}}",
            "a TCP port can have only one listener, and port 1 already has listener0",
        ),
        (
            "gateways: {g: {port: 1, listeners: [{protocol: TLS, hostname: a.test}, {protocol: TCP}]}}",
            "gateway listeners on port 1 cannot mix TLS and plaintext protocols",
        ),
        (
            "gateways: {g: {port: 1, protocol: TCP, cors: {allowOrigins: ['*']}}}",
            "policies of a listener are for HTTP, and this one speaks TCP",
        ),
        ("binds: [{port: 1, listeners: [{protocol: TCP, routes: [{}]}]}]", "protocol TCP has no routes"),
        ("binds: [{port: 1, listeners: [{tcpRoutes: [{}]}]}]", "protocol HTTP has no tcpRoutes"),
        (
            G + "tcpRoutes: [{backends: [{backend: b}]}]\nbackends: [{name: b, host: 'a:1', policies: {backendAuth: {key: k}, http: {version: HTTP/2}}}]",
            "backendAuth, http.version of the backend is for HTTP, and this is a TCP route",
        ),
        (
            G + "tcpRoutes: [{backends: [{backend: b}]}]\nbackends: [{name: b, mcp: {targets: [{name: t, mcp: {host: 'http://a/mcp'}}]}}]",
            "backend 'b' is no host: it cannot be reached by TCP",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(faults: Callable[..., list[str]], text: str, fault: str) -> None:
    found = faults(text)
    assert len(found) == 1, found
    assert fault in found[0]


def test_policies_of_the_gateway_and_its_listeners_are_the_weakest(loaded: Callable[..., Gateway]) -> None:
    """What they say of HTTP is for other routes; a backend that clients name has none of them."""
    def policy(name: str, target: str, body: str) -> str:
        names = f"name: {{name: {name}, namespace: n}}, phase: backend"
        return f"- {{{names}, target: {{gateway: {{gatewayName: default, gatewayNamespace: default{target}}}}}, policy: {{{body}}}}}\n"

    gateway = loaded(f"""
gateways:
  a: {{port: 1, protocol: TCP}}
  b: {{port: 2, protocol: TCP}}
  tls: {{port: 3, protocol: TLS}}
tcpRoutes:
- {{name: db, gateways: [a, b], backends: [{{host: "x:1"}}, {{host: "y:1", policies: {{backendTLS: {{hostname: own}}}}}}]}}
- {{name: passed, gateways: [tls], backends: [{{host: "z:1"}}]}}
policies:
{policy("all", "", "backendTLS: {hostname: all}")}{policy("one", ", port: 2", "backendTLS: {hostname: two}")}{policy("http", "", "backendAuth: {key: k}")}
""")
    found = []
    for bind in gateway.binds:
        for choice in bind.listeners[0].tcp_routes[0].backends:
            assert isinstance(choice.backend, HostBackend)
            assert choice.policies.auth is None
            tls = choice.backend.endpoint.tls
            found.append(None if tls is None else tls.hostname)
    assert found == ["all", "own", "two", "own", None]


def test_a_backend_that_clients_name_has_no_policies_of_the_gateway(loaded: Callable[..., Gateway]) -> None:
    gateway = loaded("""
gateways: {a: {port: 1, protocol: TLS}}
tcpRoutes: [{gateways: [a], backends: [{dynamic: {}}]}]
policies:
- name: {name: p, namespace: n}
  phase: backend
  target: {gateway: {gatewayName: default, gatewayNamespace: default}}
  policy: {backendTunnel: {proxy: {host: "p:1"}}}
""")
    assert len(gateway.binds[0].listeners[0].tcp_routes[0].backends) == 1
@pytest.mark.parametrize("alpn", [("postgresql",), ("h2",), ("x", "h2", "http/1.1")])
def test_a_backend_is_offered_any_protocol(loaded: Callable[..., Gateway], alpn: tuple[str, ...]) -> None:
    written = f"{{backendTLS: {{alpn: [{', '.join(alpn)}]}}}}"
    places = (f"policies: {written}, backends: [{{host: 'a:1'}}]", f"backends: [{{host: 'a:1', policies: {written}}}]")
    for place in places:
        [route] = loaded(f"{G}tcpRoutes: [{{{place}}}]").binds[0].listeners[0].tcp_routes
        assert route.backends[0].backend.endpoint.tls.alpn == alpn
        assert route.backends[0].backend.endpoint.http2 is None


def test_a_named_backend_of_http_is_offered_what_its_alpn_says(loaded: Callable[..., Gateway]) -> None:
    text = G + "tcpRoutes: [{backends: [{backend: b}]}]\nbackends: [{name: b, host: 'a:1', policies: {backendTLS: {alpn: [h2]}}}]"
    [route] = loaded(text).binds[0].listeners[0].tcp_routes
    assert route.backends[0].backend.endpoint.tls.alpn == ("h2",)


@pytest.mark.parametrize("alpn", [[""], ["x" * 256], ["\u00e9"], [f"p{i}" for i in range(17)]])
def test_no_protocol_has_such_a_name(faults: Callable[..., list[str]], alpn: list[str]) -> None:
    tls = json.dumps({"alpn": alpn})
    [told] = faults(f"{G}tcpRoutes: [{{backends: [{{host: 'a:1', policies: {{backendTLS: {tls}}}}}]}}]")
    assert "up to 16 names, each of 1 to 255 ASCII characters" in told


def test_requests_are_sent_in_two_protocols(faults: Callable[..., list[str]]) -> None:
    [told] = faults("gateways: {default: {port: 1}}\nroutes: [{backends: [{host: 'a:1', policies: {backendTLS: {alpn: [spdy/3]}}}]}]")
    assert "requests are sent in h2 and http/1.1; other protocols are for backends of tcpRoutes" in told
