"""`backendTunnel` in a configuration: where it may stand, what a proxy may have, what tells pools apart."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from headgate.config.load import TextSource, load
from headgate.errors import ConfigErrors
from headgate.ir.backend import HostBackend
from headgate.ir.endpoint import Endpoint

HEAD = "gateways: {default: {port: 1}}\n"


def endpoint(route: str, more: str = "") -> Endpoint:
    text = f"{HEAD}routes: [{{{route}}}]\n{more}"
    backend = load(TextSource(text)).gateway.binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(backend, HostBackend)
    return backend.endpoint


THROUGH = "backendTunnel: {proxy: {host: 'p:3128'}}"
PLACES = {
    "backend": ("backends: [{host: 'h:1', policies: {%s}}]", ""),
    "route": ("policies: {%s}, backends: [{host: 'h:1'}]", ""),
    "named": ("backends: [{backend: n}]", "backends: [{name: n, host: 'h:1', policies: {%s}}]"),
}


@pytest.mark.parametrize("place", ["backend", "route", "named"])
def test_where_it_may_stand(place: str) -> None:
    route, more = (text.replace("%s", THROUGH) for text in PLACES[place])
    found = endpoint(route, more)
    assert found.tunnel is not None
    assert [one.endpoint.address for one in found.tunnel.proxies] == ["p:3128"]
    assert found.address == "h:1"


def test_pools_are_told_apart_by_their_way() -> None:
    ways = [
        "",
        THROUGH,
        "backendTunnel: {proxy: {host: 'q:3128'}}",
        "backendTunnel: {proxy: {host: 'p:3128'}, policies: {backendAuth: {key: one}}}",
        "backendTunnel: {proxy: {host: 'p:3128'}, policies: {backendAuth: {key: two}}}",
        "backendTunnel: {proxy: {host: 'https://p:3128'}}",
    ]
    keys = {endpoint(f"backends: [{{host: 'h:1', policies: {{{way}}}}}]").key for way in ways}
    assert len(keys) == len(ways)
    assert not any("one" in key or "two" in key for key in keys)


def test_a_named_proxy_brings_its_policies_and_may_stand_behind() -> None:
    named = "backends: [{name: out, host: 'https://p:3128', policies: {backendAuth: {key: canary}, tcp: {connectTimeout: 2s, keepalives: {}}}}]"
    found = endpoint("backends: [{host: 'h:1', policies: {backendTunnel: {proxy: {backend: out}}}}]", named).tunnel
    assert found is not None
    [proxy] = found.proxies
    assert (proxy.endpoint.tls is not None, proxy.endpoint.connect_timeout_ms) == (True, 2000)
    assert found.policies is not None
    assert found.policies.auth is not None
    assert "canary" not in repr(found)


REFUSED = [
    ("{proxy: {service: {name: n/h, port: 1}}}", "there is no service 'n/h'"),
    ("{proxy: {backend: nope}}", "no backend is named 'nope'"),
    ("{proxy: {backend: mcp}}", "backend type cannot be used as proxy"),
    ("{proxy: {host: 'unix:/run/p'}}", "a proxy has a host and a port"),
    ("{proxy: {host: 'p:1'}, policies: {backendAuth: {passthrough: {}}}}", "there is no token of a client to send"),
    (
        "{proxy: {host: 'p:1'}, policies: {backendAuth: {oauthTokenExchange: {host: 'h:1'}}}}",
        "there is no token of a client to send",
    ),
    ("{proxy: {host: 'p:1'}, policies: {backendAuth: {aws: {region: a, serviceName: b}}}}", "CONNECT has none"),
    (
        "{proxy: {host: 'p:1'}, policies: {backendAuth: {key: {value: k, location: {queryParameter: {name: q}}}}}}",
        "CONNECT has no query",
    ),
    ("{proxy: {host: 'p:1'}, policies: {requestHeaderModifier: {set: {host: b}}}}", "the destination of a tunnel"),
    ("{proxy: {host: 'p:1'}, policies: {transformations: {response: {set: {a: '1'}}}}}", "no client sees"),
    ("{proxy: {host: 'p:1'}, policies: {transformations: {request: {body: '\"x\"'}}}}", "CONNECT has no body"),
    ("{proxy: {host: 'p:1'}, policies: {transformations: {request: {set: {':path': '\"x\"'}}}}}", "the destination of"),
    ("{proxy: {host: 'p:1'}, policies: {http: {version: HTTP/2}}}", "a proxy is asked in HTTP/1.1"),
    ("{proxy: {host: 'p:1'}, policies: {backendTLS: {alpn: [h2]}}}", "a proxy is asked in HTTP/1.1"),
    ("{proxy: {backend: circle}}", "through none twice"),
]


@pytest.mark.parametrize(("tunnel", "reason"), REFUSED)
def test_what_is_refused(tunnel: str, reason: str) -> None:
    circle = "{name: circle, host: 'c:1', policies: {backendTunnel: {proxy: {backend: circle}}}}"
    named = f"backends: [{{name: mcp, mcp: {{targets: [{{name: a, mcp: {{host: 'h:1'}}}}]}}}}, {circle}]"
    with pytest.raises(ConfigErrors, match="backendTunnel") as caught:
        endpoint(f"backends: [{{host: 'h:1', policies: {{backendTunnel: {tunnel}}}}}]", named)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("policies", "reason"),
    [
        ("responseHeaderModifier: {set: {a: b}}", "no client sees"),
        ("requestRedirect: {path: {full: /x}}", "no client sees"),
        ("sessionAffinity: {source: '\"x\"'}", "the requests of many clients"),
        ("health: {}", "no other endpoint"),
        ("a2a: {}", "neither models, agents nor MCP"),
    ],
)
def test_what_is_refused_of_a_backend_that_is_a_proxy(policies: str, reason: str) -> None:
    named = f"backends: [{{name: p, host: 'p:1', policies: {{{policies}}}}}]"
    with pytest.raises(ConfigErrors, match="backendTunnel") as caught:
        endpoint("backends: [{host: 'h:1', policies: {backendTunnel: {proxy: {backend: p}}}}]", named)
    assert reason in str(caught.value)


TAKEN = [
    "backendAuth: {key: k}",
    "backendAuth: {jwtSign: {signingKey: '%s', alg: ES256}}",
    "backendAuth: {gcp: {type: accessToken}}",
    "backendAuth: {credentials: [{key: k, location: {header: {name: x-one}}}]}",
    "requestHeaderModifier: {set: {a: b}}",
    "transformations: {request: {set: {a: 'request.host'}}}",
    "http: {requestTimeout: 1s}",
    "authorization: {rules: ['request.host == \"h\"']}",
    "extAuthz: {host: 'z:1'}",
]

# These stand at a backend of the file.
OF_NAMED = ("authorization", "extAuthz")


@pytest.mark.parametrize("policies", TAKEN)
def test_what_a_request_for_a_tunnel_takes(policies: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )  # fmt: skip
    way = f"backendTunnel: {{proxy: {{host: 'p:3128'}}, policies: {{{policies}}}}}"
    way = way.replace("'%s'", '"' + key.decode().replace("\n", "\\n") + '"')
    named = ""
    if policies.startswith(OF_NAMED):
        named = f"backends: [{{name: p, host: 'p:3128', policies: {{{policies}}}}}]"
        way = "backendTunnel: {proxy: {backend: p}}"
    found = endpoint(f"backends: [{{host: 'h:1', policies: {{{way}}}}}]", named)
    assert found.tunnel is not None
    assert found.tunnel.policies is not None
    assert found.key != endpoint(f"backends: [{{host: 'h:1', policies: {{{THROUGH}}}}}]").key


def test_proxies_stand_behind_each_other() -> None:
    way = THROUGH
    for number in range(3):
        way = f"backendTunnel: {{proxy: {{host: 'p{number}:1'}}, policies: {{{way}}}}}"
    found = endpoint(f"backends: [{{host: 'h:1', policies: {{{way}}}}}]")
    hosts = []
    while found.tunnel is not None:
        found = found.tunnel.proxies[0].endpoint
        hosts.append(found.host)
    assert hosts == ["p2", "p1", "p0", "p"]
    with pytest.raises(ConfigErrors, match="4 proxies at most"):
        endpoint(f"backends: [{{host: 'h:1', policies: {{backendTunnel: {{proxy: {{host: 'x:1'}}, policies: {{{way}}}}}}}}}]")


SERVICE = """
services: [{name: s, namespace: n, hostname: proxy.test, ports: {3128: 8080}}]
workloads:
- {uid: one, name: one, namespace: n, workloadIps: [10.0.0.1], services: {n/proxy.test: {}}}
- {uid: two, name: two, namespace: n, workloadIps: [10.0.0.2], services: {n/proxy.test: {3128: 9090}}, capacity: 3}
- {uid: sick, name: sick, namespace: n, workloadIps: [10.0.0.3], services: {n/proxy.test: {}}, status: unhealthy}
"""
TO_SERVICE = "backendTunnel: {proxy: {service: {name: n/proxy.test, port: 3128}}, policies: {%s}}"
TARGETED = "policies: [{name: {name: p, namespace: n}, target: {backend: {service: {hostname: proxy.test, namespace: n}}}, policy: {%s}}]"


@pytest.mark.parametrize("place", PLACES)
def test_a_service_may_be_the_proxy(place: str) -> None:
    way = TO_SERVICE % "backendTLS: {}, backendAuth: {key: abc}"
    route, more = (text.replace("%s", way) for text in PLACES[place])
    found = endpoint(route, f"{more}\n{SERVICE}").tunnel
    assert found is not None
    assert (found.service, found.port) == ("n/proxy.test", 3128)
    assert [(one.key, one.endpoint.address, one.capacity) for one in found.proxies] == [
        ("one", "10.0.0.1:8080", 1), ("two", "10.0.0.2:9090", 3),
    ]  # fmt: skip
    assert {one.endpoint.tls.hostname for one in found.proxies if one.endpoint.tls} == {"proxy.test"}
    assert found.policies is not None
    assert found.policies.auth is not None


def test_a_targeted_policy_reaches_the_service() -> None:
    route = f"backends: [{{host: 'h:1', policies: {{{TO_SERVICE % ''}}}}}]"
    plain = endpoint(route, SERVICE)
    secure = endpoint(route, SERVICE + TARGETED % "backendTLS: {hostname: other.test}").tunnel
    assert secure is not None
    assert {one.endpoint.tls.hostname for one in secure.proxies if one.endpoint.tls} == {"other.test"}
    assert endpoint(route, SERVICE.replace("10.0.0.2", "10.0.0.9")).key != plain.key, "a connection belongs to a place"
    with pytest.raises(ConfigErrors, match="through none twice"):
        # It would be its own proxy.
        endpoint(route, SERVICE + TARGETED % (TO_SERVICE % ""))


def test_no_proxy_leads_to_a_unix_socket() -> None:
    with pytest.raises(ConfigErrors, match="Unix socket"):
        endpoint(f"backends: [{{host: 'unix:/run/x', policies: {{{THROUGH}}}}}]")
