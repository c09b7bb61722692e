"""Backends: identity, references, MCP targets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.config.load import TextSource, load
from headgate.errors import ConfigErrors
from headgate.ir.backend import HostBackend, RouteBackend
from headgate.ir.gateway import Gateway
from headgate.ir.mcp import McpBackend, StdioTarget, StreamableHttpTarget

HEAD = "gateways: {default: {port: 1}}\n"


def backends(gateway: Gateway) -> list[RouteBackend]:
    return [one for route in gateway.binds[0].listeners[0].routes for one in route.backends]


def mcp_target(gateway: Gateway) -> StdioTarget | StreamableHttpTarget:
    backend = gateway.binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(backend, McpBackend)
    return backend.targets[0]


def test_equal_connections_share_an_endpoint_and_different_ones_do_not(
    loaded: Callable[..., Gateway],
) -> None:
    text = HEAD + (
        "routes: [{backends: [{host: 'h:1'}, {host: 'H:1', weight: 2}, {host: 'h:1', policies: {backendTLS: {}}},\n"
        "  {host: 'h:1', policies: {backendTLS: {insecure: true}}}, {host: 'https://h:1'}]}]"
    )
    found = [one.backend for one in backends(loaded(text))]
    ends = [one.endpoint for one in found if isinstance(one, HostBackend)]
    assert ends[0] is ends[1]
    assert ends[2] is ends[4]
    assert len({end.key for end in ends}) == 3


def test_a_missing_reference_loads_with_a_warning_and_answers_500_later() -> None:
    found = load(TextSource(HEAD + "routes: [{backends: [{backend: /nope}]}]"), environ={})
    assert found.warnings == ("backend '/nope' does not exist: requests to it get 500",)


def test_backends_may_be_declared_after_their_use_and_only_once(
    loaded: Callable[..., Gateway], faults: Callable[..., list[str]]
) -> None:
    text = HEAD + "routes: [{backends: [{backend: b}]}]\nbackends: [{name: b, host: 'h:1'}]"
    assert backends(loaded(text))[0].named
    twice = faults("backends: [{name: b, host: 'h:1'}, {name: /b, host: 'h:2'}]")
    assert twice == ["backends[1].name: backend 'b' is declared twice (1)"]


HOSTS = [
    ("host: 'h:8080'", "h:8080", "/mcp", False),
    ("host: 'http://h'", "h:80", "/", False),
    ("host: 'https://h/x/y'", "h:443", "/x/y", True),
    ("host: h, port: 81, path: /p", "h:81", "/p", False),
    ("host: 'https://h', port: 8443, path: /p", "h:8443", "/p", True),
]


@pytest.mark.parametrize(("spec", "address", "path", "tls"), HOSTS, ids=[case[0] for case in HOSTS])
def test_the_address_forms_of_an_mcp_target(
    spec: str, address: str, path: str, tls: bool, loaded: Callable[..., Gateway]
) -> None:
    target = mcp_target(loaded(f"mcp: {{targets: [{{name: a, mcp: {{{spec}}}}}]}}"))
    assert isinstance(target, StreamableHttpTarget)
    assert (target.endpoint.address, target.path, target.endpoint.tls is not None) == (address, path, tls)


REFUSED = [
    ("{name: a, mcp: {host: h}}", "mcp.targets[0].mcp.host: not host:port"),
    ("{name: a, mcp: {host: h, port: 1}}", "mcp.targets[0].mcp: missing field 'path'"),
    ("{name: a, mcp: {host: h, port: 1, path: p}}", "a path must begin with /"),
    ("{name: a, mcp: {backend: b}}", "no host backend is named 'b'"),
    ("{name: A_b, stdio: {cmd: x}}", "mcp.targets[0].name: a target name has"),
    ("{name: a, stdio: {cmd: ''}}", "not a command"),
    ("{name: a, stdio: {cmd: x, env: {'A=B': c}}}", "is not a name of an environment variable"),
    ("{name: a, stdio: {cmd: x}, policies: {}}", "a stdio target has no policies"),
    ("{name: a, stdio: {cmd: x}}, {name: a, stdio: {cmd: y}}", "target 'a' is defined twice"),
    ("{name: a}", "one of mcp, stdio, sse, openapi is required"),
]


@pytest.mark.parametrize(("targets", "fault"), REFUSED, ids=[case[0] for case in REFUSED])
def test_targets_that_cannot_work_are_refused(
    targets: str, fault: str, faults: Callable[..., list[str]]
) -> None:
    assert any(fault in line for line in faults(f"mcp: {{targets: [{targets}]}}"))


def test_policies_that_a_stdio_target_cannot_follow_are_refused(faults: Callable[..., list[str]]) -> None:
    entry = "{mcp: {targets: [{name: a, stdio: {cmd: x}}]}, policies: {backendAuth: {key: k}}}"
    found = faults(HEAD + f"routes: [{{backends: [{entry}]}}]")
    assert found == ["routes[0].backends[0].policies: these do not apply to a stdio target (2)"]


def test_a_stdio_target_changes_its_key_with_its_command_and_its_environment(
    loaded: Callable[..., Gateway],
) -> None:
    def key(env: str, secret: str) -> str:
        text = f"mcp: {{targets: [{{name: a, stdio: {{cmd: x, env: {{{env}: $K}}, clearEnv: true}}}}]}}"
        return mcp_target(loaded(text, {"K": secret})).key

    assert key("A", "1") == key("A", "1")
    assert len({key("A", "1"), key("A", "2"), key("B", "1")}) == 3


def test_a_named_host_lends_address_and_policies_to_a_target(loaded: Callable[..., Gateway]) -> None:
    text = (
        "mcp: {targets: [{name: a, mcp: {backend: b, path: /m}}]}\n"
        "backends: [{name: b, host: 'h:1', policies: {backendTLS: {}, backendAuth: {key: k}}}]"
    )
    target = mcp_target(loaded(text))
    assert isinstance(target, StreamableHttpTarget)
    assert target.endpoint.tls is not None
    assert target.policies.auth is not None
    assert target.policies.auth.fixed_header is not None
    assert target.policies.auth.fixed_header.key.secret.reveal() == "k"


ASKING = "extAuthz: {backend: z}", "backendAuth: {oauthTokenExchange: {backend: z}}", "inferenceRouting: {endpointPicker: {backend: z}}"


@pytest.mark.parametrize("policy", ASKING)
@pytest.mark.parametrize("first", [True, False])
def test_a_service_of_a_named_backend_may_stand_before_or_behind_it(policy: str, first: bool) -> None:
    named = ["{name: z, host: 'z:1', policies: {backendTLS: {}}}", f"{{name: a, host: 'a:1', policies: {{{policy}}}}}"]
    listed = ", ".join(named if first else reversed(named))
    text = f"gateways: {{default: {{port: 1}}}}\nroutes: [{{backends: [{{backend: a}}]}}]\nbackends: [{listed}]\n"
    [route] = load(TextSource(text)).gateway.binds[0].listeners[0].routes
    found = route.backends[0].policies
    told = (found.ext_authz, found.auth, found.inference)
    assert [one for one in told if one is not None], "the policy is lost"
    assert "BackendTls(" in repr(told), "the policies of the service are lost"


def test_a_backend_whose_policies_call_itself_is_refused() -> None:
    named = [f"{{name: {one}, host: 'h:1', policies: {{extAuthz: {{backend: {other}}}}}}}" for one, other in ("ab", "ba")]
    text = f"gateways: {{default: {{port: 1}}}}\nbackends: [{', '.join(named)}]\n"
    with pytest.raises(ConfigErrors, match="call the service itself"):
        load(TextSource(text))


SENT = "proxyProtocol: {version: v2}"
OTHERS = "it is for host and service backends"
# What follows `routes:`, and the fault.
REFUSED = {
    "dynamic": ("[{backends: [{dynamic: {allowedHosts: [a.test]}, policies: {%s}}]}]", "backends[0].policies.proxyProtocol", OTHERS),
    "mcp": ("[{backends: [{mcp: {targets: [{name: a, mcp: {host: 'h:1'}}]}, policies: {%s}}]}]", "backends[0].policies.proxyProtocol", OTHERS),
    "mcp target": (
        "[{backends: [{mcp: {targets: [{name: a, mcp: {backend: b}}]}}]}]\nbackends: [{name: b, host: 'h:1', policies: {%s}}]",
        "backends[0].policies.proxyProtocol", "an MCP session can use several connections"),
    "ai": ("[{backends: [{ai: {name: a, provider: {openAI: {model: m}}}, policies: {%s}}]}]", "backends[0].policies.proxyProtocol", OTHERS),
    "provider": ("[{backends: [{ai: {name: a, provider: {openAI: {model: m}}, policies: {%s}}}]}]", "policies.proxyProtocol", OTHERS),
    "tunnel": ("[{backends: [{host: 'h:1', policies: {%s, backendTunnel: {proxy: {host: 'p:1'}}}}]}]", "policies.proxyProtocol", "it cannot be sent through a proxy"),
    "proxy": (
        "[{backends: [{host: 'h:1', policies: {backendTunnel: {proxy: {backend: p}}}}]}]\nbackends: [{name: p, host: 'p:1', policies: {%s}}]",
        "backendTunnel.policies", "proxyProtocol: a proxy gets requests for tunnels of the gateway"),
    "picker": (
        "[{backends: [{host: 'h:1', policies: {%s, inferenceRouting: {endpointPicker: {host: 'p:1'}}}}]}]",
        "policies.proxyProtocol", "inferenceRouting shares connections between clients"),
    "version": ("[{backends: [{host: 'h:1', policies: {proxyProtocol: {version: all}}}]}]", "version", "v1, v2"),
    "none": ("[{backends: [{host: 'h:1', policies: {proxyProtocol: {}}}]}]", "proxyProtocol", "missing field 'version'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_who_is_not_told_whose_a_connection_is(case: str, faults: Callable[..., list[str]]) -> None:
    text, path, reason = REFUSED[case]
    [fault] = faults(HEAD + "routes: " + text.replace("%s", SENT))
    assert path in fault
    assert reason in fault


def test_connections_that_begin_with_a_header_are_others(loaded: Callable[..., Gateway]) -> None:
    ways = ["", "proxyProtocol: {version: v1}", SENT, SENT + ", backendTLS: {}"]
    listed = ", ".join(f"{{host: 'h:1', policies: {{{way}}}}}" for way in ways)
    found = [one.backend for one in backends(loaded(HEAD + f"routes: [{{backends: [{listed}]}}]"))]
    ends = [one.endpoint for one in found if isinstance(one, HostBackend)]
    assert [end.proxy_version for end in ends] == ["", "v1", "v2", "v2"]
    assert len({end.key for end in ends}) == 4
    assert [end.key for end in ends[:3]] == ["http://h:1", "http://h:1#proxy v1", "http://h:1#proxy v2"]
