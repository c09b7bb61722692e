"""`dynamic` backends: what may stand at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headgate.ir.backend import DestinationRules, DynamicBackend
from headgate.ir.gateway import Gateway

ROUTE = "gateways: {default: {port: 1}}\nroutes:\n- backends: [{dynamic: %s%s}]\n%s"
TCP = "gateways: {default: {port: 1, protocol: TLS}}\ntcpRoutes:\n- backends: [{dynamic: %s%s}]\n%s"
KEY = ", policies: {backendAuth: {key: k1}}"
PROXY = ", policies: {backendTunnel: {proxy: {host: 'p.test:3128'}}}"


def backend(gateway: Gateway) -> DynamicBackend:
    [listener] = gateway.binds[0].listeners
    [route] = listener.routes or listener.tcp_routes
    [choice] = route.backends
    assert isinstance(choice.backend, DynamicBackend)
    return choice.backend


def test_settings(loaded: Callable[..., Gateway]) -> None:
    plain = backend(loaded(ROUTE % ("{}", "", "")))
    assert (plain.name, plain.target, plain.rules) == ("dynamic", None, DestinationRules())
    assert (plain.endpoint.tls, plain.endpoint.tcp, plain.endpoint.infers) == (None, False, True)
    written = "{target: '\"a.test:80\"', allowedHosts: [A.test, '*.b.test', '[::ffff:10.0.0.1]', 'FD00::1'], allowedRanges: [10.0.0.0/8, fd00::1], allowedPorts: [443, 443]}"
    found = backend(loaded(ROUTE % (written, ", policies: {backendTLS: {}}", "")))
    assert found.target == '"a.test:80"'
    assert found.rules == DestinationRules(
        hosts=("a.test", "*.b.test", "10.0.0.1", "fd00::1"), ranges=("10.0.0.0/8", "fd00::1/128"), ports=(443,)
    )
    assert found.endpoint.tls is not None
    assert found.key != plain.key
    tcp = backend(loaded(TCP % ("{allowedPorts: [443]}", "", "")))
    assert (tcp.rules.ports, tcp.endpoint.tcp) == ((443,), True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROUTE % ("{allowedHosts: []}", "", ""), "allowedHosts"),
        (ROUTE % ("{allowedHosts: ['*']}", "", ""), "not a host name"),
        (ROUTE % ("{allowedHosts: ['a.test:80']}", "", ""), "not a host name"),
        (ROUTE % ("{allowedRanges: ['10.0.0.1/8']}", "", ""), "not a network"),
        (ROUTE % ("{allowedRanges: [a.test]}", "", ""), "not a network"),
        (ROUTE % ("{allowedPorts: [0]}", "", ""), "allowedPorts[0]"),
        (ROUTE % ("{target: 'request.'}", "", ""), "dynamic.target"),
        (ROUTE % ("{host: a.test}", "", ""), "unknown field 'host'"),
        (ROUTE % ("{}", KEY, ""), "backendAuth of a dynamic backend needs its allowedHosts: any client could have it sent"),
        (ROUTE % ("{}", PROXY, ""), "backendTunnel of a dynamic backend needs its allowedHosts: the proxy resolves"),
        (ROUTE % ("{}", ", policies: {health: {}}", ""), "health applies to backends with endpoints"),
        (TCP % ("{target: '\"a:1\"'}", "", ""), "which a TCP route does not have"),
        (TCP % ("{}", PROXY, ""), "backendTunnel of a dynamic backend needs its allowedHosts"),
        ("gateways: {default: {port: 1}}\nbackends: [{name: a, dynamic: {}, policies: {health: {}}}]", "health applies to backends with endpoints"),
    ],
)
def test_faults(faults: Callable[..., list[str]], text: str, message: str) -> None:
    found = faults(text)
    assert any(message in line for line in found), found


def test_a_client_certificate_needs_a_list_of_hosts(
    faults: Callable[..., list[str]], loaded: Callable[..., Gateway], certificates: Any
) -> None:
    shown = f"{{cert: {certificates.folder}/a.crt, key: {certificates.folder}/a.key}}"
    [line] = faults(ROUTE % ("{}", f", policies: {{backendTLS: {shown}}}", ""))
    assert "a client certificate (backendTLS) of a dynamic backend needs its allowedHosts" in line
    inherited = ROUTE % ("{}", "", f"  policies: {{backendTLS: {shown}}}\n")
    found = backend(loaded(inherited))
    # Verified as ever, and shown nothing.
    assert found.endpoint.tls is not None
    assert (found.endpoint.tls.client, found.endpoint.tls.insecure) == (None, False)
    found = backend(loaded(inherited.replace("dynamic: {}", "dynamic: {allowedHosts: [a.test]}")))
    assert found.endpoint.tls is not None
    assert found.endpoint.tls.client is not None


def test_credentials_of_a_route_are_not_those_of_its_dynamic_backend(loaded: Callable[..., Gateway]) -> None:
    text = ROUTE % ("{}", "", "  policies: {backendAuth: {key: k1}}\n")
    [route] = loaded(text).binds[0].listeners[0].routes
    assert route.backends[0].policies.auth is None
    own = ROUTE % ("{allowedHosts: [a.test]}", KEY, "  policies: {backendAuth: {key: k2}}\n")
    [route] = loaded(own).binds[0].listeners[0].routes
    auth = route.backends[0].policies.auth
    assert auth is not None
    assert auth.fixed_header is not None
    assert auth.fixed_header.key.secret.reveal() == "k1"


def test_what_is_about_endpoints_is_not_inherited(loaded: Callable[..., Gateway]) -> None:
    target = "target: {gateway: {gatewayName: default, gatewayNamespace: default}}"
    of_all = f"policies: [{{name: {{name: a, namespace: a}}, {target}, phase: backend, policy: {{health: {{eviction: {{}}}}}}}}]\n"
    [route] = loaded((ROUTE % ("{}", "", "")) + of_all).binds[0].listeners[0].routes
    assert route.backends[0].policies.health is None
    [route] = loaded((ROUTE % ("{}", "", "")).replace("dynamic: {}", "host: 'a.test:1'") + of_all).binds[0].listeners[0].routes
    assert route.backends[0].policies.health is not None
