"""Targeted policies: who they reach and which level wins."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.config.load import TextSource, load
from headgate.errors import ConfigErrors
from headgate.ir.gateway import Gateway
from headgate.ir.route import Route

HEAD = "gateways: {a: {port: 1, listeners: [{name: x}]}, b: {port: 2}}\n"
GATEWAY = "gateway: {gatewayName: default, gatewayNamespace: default"
ROUTE = "route: {name: r, namespace: default"


def policy(number: int, target: str, body: str) -> str:
    return f"- {{name: {{name: p{number}, namespace: n}}, target: {{{target}}}}}, policy: {{{body}}}}}\n"


def called(number: int, target: str, body: str) -> str:
    """Return a policy of calls to the backends behind a target."""
    return policy(number, target, body).replace("policy: {", "phase: backend, policy: {")


def timeout(seconds: int) -> str:
    return f"timeout: {{requestTimeout: {seconds}s}}"


def routes(gateway: Gateway) -> list[Route]:
    return [bind.listeners[0].routes[0] for bind in gateway.binds]


LEVELS = [
    (f"{GATEWAY}", ""),
    (f"{GATEWAY}, port: 1", ""),
    (f"{GATEWAY}, listenerName: x", ""),
    (f"{ROUTE}", ""),
    (f"{ROUTE}, ruleName: u", ""),
]


@pytest.mark.parametrize("strongest", range(1, len(LEVELS) + 1))
def test_the_strongest_level_wins(strongest: int, loaded: Callable[..., Gateway]) -> None:
    text = HEAD + "routes: [{name: r, ruleName: u, gateways: a}]\npolicies:\n"
    for number in reversed(range(strongest)):
        text += policy(number, LEVELS[number][0], timeout(number + 1))
    found = loaded(text).binds[0].listeners[0].routes[0].policies.timeout
    assert found is not None
    assert found.request_timeout_ms == strongest * 1000


def test_what_is_written_on_the_route_wins_over_everything(loaded: Callable[..., Gateway]) -> None:
    text = HEAD + f"routes: [{{name: r, gateways: a, policies: {{{timeout(9)}}}}}]\npolicies:\n"
    text += policy(0, ROUTE, timeout(1))
    found = loaded(text).binds[0].listeners[0].routes[0].policies.timeout
    assert found is not None
    assert found.request_timeout_ms == 9000


def test_a_policy_reaches_only_its_gateway(loaded: Callable[..., Gateway]) -> None:
    text = HEAD + "routes: [{name: r, gateways: [a, b]}]\npolicies:\n" + policy(0, f"{GATEWAY}, listenerName: a", timeout(1))
    first, second = routes(loaded(text))
    assert first.policies.timeout is not None
    assert second.policies.timeout is None


def test_a_gateways_rate_limit_is_a_ceiling_beside_the_routes_own(loaded: Callable[..., Gateway]) -> None:
    limit = "localRateLimit: [{maxTokens: 5, tokensPerFill: 5, fillInterval: 1s}]"
    text = (
        HEAD
        + f"routes: [{{name: r, gateways: a, policies: {{{limit}}}}}, {{name: q, gateways: a}}]\npolicies:\n"
    )
    text += policy(0, GATEWAY, limit)
    first, second = loaded(text).binds[0].listeners[0].routes
    assert [one.key.split("/")[1] for one in first.policies.local_rate_limits] == ["policy", "route"]
    assert second.policies.local_rate_limits == first.policies.local_rate_limits[:1]


def test_backend_policies_of_a_target_reach_hosts_models_and_mcp_targets(
    loaded: Callable[..., Gateway],
) -> None:
    text = (
        "gateways: {a: {port: 1}}\nroutes: [{gateways: a, backends: [{host: 'h:1'}]}]\n"
        "llm: {gateways: a, models: [{name: m, provider: ollama}]}\n"
        "mcp: {gateways: a, targets: [{name: t, mcp: {host: 'h:2'}}]}\npolicies:\n"
    )
    text += policy(0, GATEWAY, "backendAuth: {key: k}") + policy(1, GATEWAY, "backendTLS: {}")
    host, llm, mcp = (route.backends[0] for route in loaded(text).binds[0].listeners[0].routes)
    assert host.policies.auth is not None
    assert host.backend.endpoint.tls is not None  # type: ignore[union-attr]
    assert llm.backend.models[0].policies.auth is not None  # type: ignore[union-attr]
    assert llm.backend.models[0].provider.endpoint.tls is not None  # type: ignore[union-attr]
    assert mcp.backend.targets[0].policies.auth is not None  # type: ignore[union-attr]


REFUSED = [
    (GATEWAY, "", "'policies' must contain exactly 1 policy"),
    (GATEWAY, f"{timeout(1)}, backendTLS: {{}}", "'policies' must contain exactly 1 policy"),
]


@pytest.mark.parametrize(("target", "body", "fault"), REFUSED)
def test_one_policy_per_entry(target: str, body: str, fault: str, faults: Callable[..., list[str]]) -> None:
    found = faults("policies:\n" + policy(0, target, body))
    assert found == [f"policies[0].policy: {fault} (2)"]


def test_the_gateway_phase_takes_only_its_own_policies(faults: Callable[..., list[str]]) -> None:
    name, target = "name: {name: p, namespace: n}", f"target: {{{GATEWAY}}}}}"
    entry = f"policies: [{{{name}, {target}, phase: gateway, policy: {{{timeout(1)}}}}}]"
    assert faults(entry) == ["policies[0].policy.timeout: this policy does not run in the gateway phase (1)"]


def test_names_of_policies_are_unique(faults: Callable[..., list[str]]) -> None:
    text = "policies:\n" + policy(0, ROUTE, timeout(1)) * 2
    assert faults(text) == ["policies[1].name: policy 'n/p0' is declared twice (3)"]


PLACES = """
gateways: {default: {port: 1}, edge: {port: 2}, many: {port: 3, listeners: [{name: a, hostname: a.test}, {name: b}]}}
binds: [{port: 4, listeners: [{name: bound, routes: [{name: s}]}]}]
llm: {port: 5, models: []}
mcp: {port: 6, targets: [{name: t, mcp: {host: "h:2"}}]}
routes: [{name: r, gateways: [default, edge, many]}]
policies:
"""
# A target, and the listeners whose routes it reaches.
REACHED = [
    ("", ["default", "edge", "a", "b", "bound", "llm", "mcp"]),
    (", listenerName: default", ["default"]),
    (", listenerName: edge", ["edge"]),
    (", listenerName: many", ["a", "b"]),
    (", listenerName: a", ["a"]),
    (", listenerName: many/a", ["a"]),
    (", listenerName: bound", ["bound"]),
    (", listenerName: llm", ["llm"]),
    (", listenerName: mcp", ["mcp"]),
    (", port: 3", ["a", "b"]),
]


@pytest.mark.parametrize(("target", "listeners"), REACHED)
def test_every_listener_is_one_of_the_default_gateway(
    target: str, listeners: list[str], loaded: Callable[..., Gateway]
) -> None:
    found = [one for bind in loaded(PLACES + policy(0, GATEWAY + target, timeout(1))).binds for one in bind.listeners]
    assert [one.name for one in found if all(route.policies.timeout for route in one.routes)] == listeners
    assert {(one.gateway_namespace, one.gateway_name) for one in found} == {("default", "default")}
    assert len({one.key for one in found}) == 7


NOWHERE = [
    (f"{GATEWAY}, listenerName: nope", "the target matches no listener of the gateway default/default"),
    (f"{GATEWAY}, port: 9", "the target matches no listener of the gateway default/default"),
    ("gateway: {gatewayName: edge, gatewayNamespace: default", "there is no gateway default/edge: all listeners belong to "
     "default/default, and gateways.<x> is its listener <x> (listenerName)"),
    ("route: {name: q, namespace: default", "the target matches no route"),
    ("route: {name: r, namespace: other", "the target matches no route"),
    ("route: {name: r, namespace: default, ruleName: x", "the target matches no route"),
]
PROTECTING = [
    "jwtAuth: {issuer: i, jwks: {url: 'http://keys.test/jwks'}}", "basicAuth: {htpasswd: 'a:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M='}",
    "apiKey: {keys: [{key: k}]}", "authorization: {rules: ['true']}", "csrf: {}", "cors: {allowOrigins: ['https://a.test']}",
    "localRateLimit: [{maxTokens: 1, tokensPerFill: 1, fillInterval: 1s}]", "mcpAuthorization: {rules: ['true']}",
    "ai: {promptGuard: {request: [{regex: {action: reject, rules: [{pattern: x}]}}]}}",
]  # fmt: skip
OTHERS = [timeout(1), "requestHeaderModifier: {set: {a: b}}", "urlRewrite: {authority: {full: h}}", "buffer: {request: {}}",
          "retry: {attempts: 1, codes: [503]}", "backendAuth: {key: k}", "ai: {defaults: {x: 1}}"]  # fmt: skip


@pytest.mark.parametrize(("target", "told"), NOWHERE)
def test_a_policy_that_reaches_nothing_is_warned_about(target: str, told: str) -> None:
    found = load(TextSource(PLACES + policy(0, target, timeout(1))), environ={})
    assert found.warnings == (f"policies[0]: {told}",)


@pytest.mark.parametrize(("target", "told"), NOWHERE)
def test_protection_that_reaches_nothing_is_refused(target: str, told: str, faults: Callable[..., list[str]]) -> None:
    assert faults(PLACES + policy(0, target, "csrf: {}")) == [f"policies[0].target: {told} (8)"]


@pytest.mark.parametrize(("body", "refused"), [(one, True) for one in PROTECTING] + [(one, False) for one in OTHERS])
def test_the_kind_decides_between_an_error_and_a_warning(body: str, refused: bool, loaded: Callable[..., Gateway]) -> None:
    loaded(PLACES + policy(0, ROUTE, body))
    text = PLACES + policy(0, "route: {name: q, namespace: default", body)
    if not refused:
        assert load(TextSource(text), environ={}).warnings == ("policies[0]: the target matches no route",)
        return
    with pytest.raises(ConfigErrors, match=r"^policies\[0\].target: the target matches no route \(--config:8\)$"):
        load(TextSource(text), environ={})


def test_the_phase_of_the_gateway_reaches_nothing_either(faults: Callable[..., list[str]]) -> None:
    name, target = "name: {name: p, namespace: n}", f"target: {{{GATEWAY}, listenerName: nope}}}}"
    entry = f"- {{{name}, {target}, phase: gateway, policy: {{cors: {{allowOrigins: []}}}}}}"
    assert faults(PLACES + entry) == ["policies[0].target: the target matches no listener of the gateway default/default (8)"]


BACKENDS = """
gateways: {default: {port: 1}}
backends:
- {name: one, host: "a.test:1", policies: {%s}}
services: [{name: s, namespace: n, hostname: s.test, ports: {80: 1, 81: 1}}]
workloads: [{uid: w, name: w, namespace: n, workloadIps: [10.0.0.1], services: {n/s.test: {80: 1, 81: 1}}}]
routes:
- name: r
  policies: {%s}
  backends: [{backend: /one, policies: {%s}}, {service: {name: n/s.test, port: 80}}, {service: {name: n/s.test, port: 81}}]
policies:
"""
NAMED = "backend: {backend: {name: one, namespace: ''}"
SERVICE = "backend: {service: {hostname: s.test, namespace: n"


def key(value: str) -> str:
    return f"backendAuth: {{key: {value}}}"


def keys(gateway: Gateway) -> list[str]:
    found = []
    for choice in routes(gateway)[0].backends:
        auth = choice.policies.auth
        found.append("" if auth is None else auth.main.key.secret.reveal())     # type: ignore[union-attr]
    return found


def test_policies_of_backends_and_services(loaded: Callable[..., Gateway]) -> None:
    text = BACKENDS % ("", "", "") + policy(0, NAMED, key("named")) + policy(1, f"{SERVICE}}}", key("service"))
    text += policy(2, f"{SERVICE}, port: 81}}", key("port"))
    assert keys(loaded(text)) == ["named", "service", "port"]
    above = policy(3, "gateway: {gatewayName: default, gatewayNamespace: default", key("gateway"))
    assert keys(loaded(text + above)) == ["named", "service", "port"], "a gateway is weaker than what targets the backend"
    on_route = policy(4, ROUTE, key("route"))
    assert keys(loaded(text + above + on_route)) == ["route", "route", "route"]
    own = text.replace("policies: {}}\nservices", f"policies: {{{key('own')}}}}}\nservices")
    assert keys(loaded(own + above)) == ["own", "service", "port"]
    reference = text.replace("{backend: /one, policies: {}}", f"{{backend: /one, policies: {{{key('here')}}}}}")
    assert keys(loaded(reference + on_route)) == ["here", "route", "route"]


def test_a_policy_of_backends_has_to_be_one(faults: Callable[..., list[str]]) -> None:
    text = BACKENDS % ("", "", "") + policy(0, NAMED, timeout(1))
    assert any("this policy is not one of backends (a2a, ai, authorization," in line for line in faults(text))
    text = BACKENDS % ("", "", "") + policy(0, ROUTE, "http: {requestTimeout: 1s}")
    assert any("it needs phase backend" in line for line in faults(text))
    text = BACKENDS % ("", "", "") + called(0, ROUTE, timeout(1))
    assert any("this policy is not one of backends (a2a, ai, authorization," in line for line in faults(text))
    text = BACKENDS % ("", "", "") + policy(0, "listenerSet: {name: x, namespace: y", key("x"))
    assert any("not supported yet" in line and "listenerSet" in line for line in faults(text))


def test_a_target_that_no_route_uses_is_told(faults: Callable[..., list[str]]) -> None:
    target = "backend: {backend: {name: two, namespace: ''}"
    text = BACKENDS % ("", "", "")
    assert load(TextSource(text + policy(0, target, key("x")))).warnings == ("policies[0]: no route uses the target",)
    found = faults(text + policy(0, target, "authorization: {rules: ['true']}"))
    assert found == ["policies[0].target: no route uses the target (12)"]


def test_policies_of_a_service_hold_for_calls_of_policies_that_stand_before_them() -> None:
    asked = "extAuthz: {service: {name: n/authz.test, port: 1}}"
    service = "services: [{name: s, namespace: n, hostname: authz.test, ports: {1: 1}}]\n"
    place = "workloads: [{uid: u, name: u, namespace: n, workloadIps: [10.0.0.1], services: {n/authz.test: {}}}]\n"
    target = "backend: {service: {hostname: authz.test, namespace: n"
    policies = policy(1, ROUTE, asked) + policy(2, f"{target}}}", "backendTLS: {}")
    text = f"{HEAD}routes: [{{name: r, gateways: a, backends: [{{host: 'h:1'}}]}}]\n{service}{place}policies:\n{policies}"
    [found] = load(TextSource(text)).gateway.binds[0].listeners[0].routes
    assert found.policies.ext_authz is not None
    assert all(one.tls is not None for one, _ in found.policies.ext_authz[0].service.places)


def within(seconds: int) -> str:
    return f"http: {{requestTimeout: {seconds}s}}"


# From the weakest to the strongest.
CALLS = [
    (GATEWAY, "http: {requestTimeout: 1s}"),
    (f"{GATEWAY}, listenerName: default", "http: {requestTimeout: 2s}"),
    (NAMED, "http: {requestTimeout: 3s}"),
    (ROUTE, "http: {requestTimeout: 4s}"),
    (f"{ROUTE}, ruleName: u", "http: {requestTimeout: 5s}"),
]


@pytest.mark.parametrize("strongest", range(1, len(CALLS) + 1))
def test_of_policies_of_calls_the_strongest_level_wins(strongest: int, loaded: Callable[..., Gateway]) -> None:
    text = (BACKENDS % ("", "", "")).replace("name: r\n", "name: r\n  ruleName: u\n")
    for number in reversed(range(strongest)):
        text += called(number, *CALLS[number])
    found = routes(loaded(text))[0].backends[0].policies
    assert found.request_timeout_ms == strongest * 1000
    own = routes(loaded(text.replace("{backend: /one, policies: {}}", f"{{backend: /one, policies: {{{within(9)}}}}}")))
    assert own[0].backends[0].policies.request_timeout_ms == 9000


def test_policies_of_calls_do_not_touch_requests_before_them(loaded: Callable[..., Gateway]) -> None:
    rules = "authorization: {rules: ['true']}"
    text = BACKENDS % ("", "", "") + called(0, ROUTE, rules) + called(1, NAMED, rules) + called(2, GATEWAY, rules)
    [route] = routes(loaded(text))
    assert route.policies.authorization is None
    counts = [len(one.policies.authorization.allow) for one in route.backends]  # type: ignore[union-attr]
    assert counts == [3, 2, 2], "rules add up"


def test_a_section_is_stronger_than_its_backend_and_weaker_than_the_route(loaded: Callable[..., Gateway]) -> None:
    providers = "[{name: a, provider: {openAI: {}}}, {name: b, provider: {openAI: {}}}]"
    text = (
        f"gateways: {{default: {{port: 1}}}}\nbackends: [{{name: one, ai: {{groups: [{{providers: {providers}}}]}}}}]\n"
        "routes: [{name: r, backends: [{backend: one}]}]\npolicies:\n"
    )
    section = "backend: {backend: {name: one, namespace: '', section: b}"
    text += called(0, NAMED, within(1)) + called(1, section, within(2))

    def found(text: str) -> list[int | None]:
        [members] = routes(loaded(text))[0].backends[0].backend.groups  # type: ignore[union-attr]
        return [one.policies.request_timeout_ms for one in members]

    assert found(text) == [1000, 2000]
    assert found(text + called(2, ROUTE, within(3))) == [3000, 3000]


def test_an_mcp_target_is_a_section(loaded: Callable[..., Gateway]) -> None:
    targets = "[{name: a, mcp: {host: 'h:1'}}, {name: b, mcp: {host: 'h:2'}}]"
    text = (
        f"gateways: {{default: {{port: 1}}}}\nbackends: [{{name: one, mcp: {{targets: {targets}}}}}]\n"
        "routes: [{name: r, backends: [{backend: one}]}]\npolicies:\n"
    )
    text += called(0, "backend: {backend: {name: one, namespace: '', section: b}", key("k"))
    # These two have no meaning there.
    text += called(1, GATEWAY, "health: {eviction: {duration: 1s}}") + called(2, ROUTE, "ai: {defaults: {a: 1}}")
    found = routes(loaded(text))[0].backends[0].backend.targets  # type: ignore[union-attr]
    assert [one.policies.auth is not None for one in found] == [False, True]


def test_what_is_said_of_http_leaves_routes_of_connections_alone(loaded: Callable[..., Gateway]) -> None:
    text = BACKENDS.replace("gateways: {default: {port: 1}}", "gateways: {default: {port: 1}, t: {port: 2, protocol: TCP}}")
    tcp = "tcpRoutes: [{gateways: t, backends: [{service: {name: n/s.test, port: 80}}, {backend: /one}]}]\n"
    text = (text % ("", "", "")).replace("policies:\n", tcp + "policies:\n")
    for number, target in enumerate((NAMED, f"{SERVICE}}}")):
        text += policy(3 * number, target, within(1)) + policy(3 * number + 1, target, key("k"))
        text += policy(3 * number + 2, target, "tcp: {connectTimeout: 7s, keepalives: {enabled: false}}")
    http, tcp_bind = loaded(text).binds
    assert [one.policies.request_timeout_ms for one in http.listeners[0].routes[0].backends] == [1000] * 3
    [route] = tcp_bind.listeners[0].tcp_routes
    assert [one.policies.auth for one in route.backends] == [None, None]
    [service, host] = (one.backend for one in route.backends)
    assert service.endpoints[0].endpoint.connect_timeout_ms == 7000  # type: ignore[union-attr]
    assert host.endpoint.connect_timeout_ms == 7000  # type: ignore[union-attr]


def test_frontend_policies_of_the_gateway_are_below_those_of_the_file(
    loaded: Callable[..., Gateway], faults: Callable[..., list[str]]
) -> None:
    def front(number: int, target: str, body: str) -> str:
        return policy(number, target, body).replace("policy: {", "frontend: {")

    text = "gateways: {default: {port: 1}}\npolicies:\n"
    text += front(0, GATEWAY, "connect: {mode: tunnel}, http: {http1MaxHeaders: 7}") + front(1, GATEWAY, "connect: {mode: route}")
    found = loaded(text).frontend
    assert (found.connect, found.http1_max_headers) == ("tunnel", 7)
    assert loaded(text + "frontendPolicies: {connect: {mode: deny}}\n").frontend.connect == "deny"
    assert faults(text + front(2, f"{GATEWAY}, listenerName: x", "tcp: {keepalives: {}}")) == [
        "policies[2].target: frontend is for the whole gateway default/default or one of its ports (5)"
    ]


def overriding(number: int, target: str, body: str) -> str:
    return policy(number, target, body).replace("policy: {", "inheritance: override, policy: {")


ONE = HEAD + "routes: [{name: r, gateways: [a, b], backends: [{host: '127.0.0.1:1'}], policies: {%s}}]\npolicies:\n"


def test_a_level_may_hold_against_stronger_ones() -> None:
    """Of two that do the weaker one holds."""
    text = ONE % timeout(1) + policy(1, f"{ROUTE}", timeout(2)) + overriding(2, f"{GATEWAY}, port: 1", timeout(3))
    text += overriding(3, f"{GATEWAY}, listenerName: x", timeout(4))
    first, second = routes(load(TextSource(text), environ={}).gateway)
    assert first.policies.timeout is not None
    assert second.policies.timeout is not None
    assert (first.policies.timeout.request_timeout_ms, second.policies.timeout.request_timeout_ms) == (3_000, 1_000)


def rules(name: str) -> str:
    return f"authorization: {{rules: ['request.path == \"/{name}\"']}}"


def test_rules_add_up_to_the_level_that_overrides() -> None:
    text = ONE % rules("inline") + policy(1, f"{GATEWAY}", rules("all")) + overriding(2, f"{GATEWAY}, port: 1", rules("port"))
    first, second = (one.policies.authorization for one in routes(load(TextSource(text), environ={}).gateway))
    assert [name for name in ("all", "port", "inline") if f"/{name}" in str(first)] == ["all", "port"]
    assert [name for name in ("all", "port", "inline") if f"/{name}" in str(second)] == ["all", "inline"]


def limit(amount: int) -> str:
    return f"localRateLimit: [{{maxTokens: {amount}, tokensPerFill: {amount}, fillInterval: 1s}}]"


def test_a_ceiling_that_overrides_has_no_limit_beside_it() -> None:
    text = ONE % limit(1) + overriding(1, f"{GATEWAY}, port: 1", limit(9)) + policy(2, f"{GATEWAY}, listenerName: x", limit(5))
    first, second = (one.policies.local_rate_limits for one in routes(load(TextSource(text), environ={}).gateway))
    assert (len(first), len(second)) == (1, 1)
    assert "9" in str(first)


def test_policies_before_a_route_is_known_may_override() -> None:
    text = HEAD.replace("name: x}", "name: x, cors: {allowOrigins: ['https://inline.test']}}") + "routes: []\npolicies:\n"
    text += overriding(1, f"{GATEWAY}", "cors: {allowOrigins: ['https://all.test']}").replace("policy: {", "phase: gateway, policy: {")
    found = [bind.listeners[0].policies.cors for bind in load(TextSource(text), environ={}).gateway.binds]
    assert all("https://all.test" in str(one) for one in found)


@pytest.mark.parametrize(
    "entry",
    [
        called(1, GATEWAY, "http: {version: HTTP/2}").replace("phase:", "inheritance: override, phase:"),
        overriding(1, GATEWAY, "backendTLS: {}"),
        overriding(1, "backend: {backend: {name: b, namespace: ''}", "http: {version: HTTP/2}"),
    ],
)
def test_what_is_about_backends_cannot_override(entry: str) -> None:
    text = ONE % "" + entry + "backends: [{name: b, host: 'a.test:1'}]\n"
    with pytest.raises(ConfigErrors, match=r"inheritance"):
        load(TextSource(text), environ={})
