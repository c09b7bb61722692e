"""Policies of one level."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from headgate.config.policy import table
from headgate.config.policy_values import NO_OPTIONS, BackendOptions
from headgate.ir.backend import HostBackend
from headgate.ir.gateway import Gateway
from headgate.ir.policies import DirectResponse, RoutePolicies


def policies(loaded: Callable[..., Gateway], text: str) -> RoutePolicies:
    gateway = loaded(f"gateways: {{default: {{port: 1}}}}\nroutes: [{{policies: {{{text}}}}}]")
    return gateway.binds[0].listeners[0].routes[0].policies


def test_direct_responses_hold_bytes_and_static_headers(loaded: Callable[..., Gateway]) -> None:
    text = "directResponse: {status: 200, body: é, headers: {X-A: '\"1\"'}}"
    assert policies(loaded, text).direct_response == (
        DirectResponse(status=200, body="é".encode(), headers=(("x-a", '"1"'),)),
    )
    assert policies(loaded, "directResponse: {status: 204, body: [0, 255]}").direct_response == (
        DirectResponse(status=204, body=b"\0\xff"),
    )


LIMITS = [
    ("{maxTokens: 10, tokensPerFill: 5, fillInterval: 1500ms}", (10, 5, 1_500_000_000)),
    ("{requests: 5, unit: Seconds}", (5, 5, 10**9)),
    ("{requests: 5, unit: minutes, burst: 2}", (7, 5, 60 * 10**9)),
    ("{requests: 1, unit: Hours}", (1, 1, 3600 * 10**9)),
    ("{fillInterval: 1s, type: requests}", (0, 0, 10**9)),
]


@pytest.mark.parametrize(("entry", "numbers"), LIMITS, ids=[case[0] for case in LIMITS])
def test_both_spellings_of_rate_limits_become_buckets(
    entry: str, numbers: tuple[int, int, int], loaded: Callable[..., Gateway]
) -> None:
    (limit,) = policies(loaded, f"localRateLimit: [{entry}]").local_rate_limits
    assert (limit.max_tokens, limit.tokens_per_fill, limit.fill_interval_ns) == numbers


def test_a_bucket_keeps_its_key_while_its_numbers_stay(loaded: Callable[..., Gateway]) -> None:
    def key(most: int, extra: str = "") -> str:
        entry = f"{{maxTokens: {most}, tokensPerFill: 1, fillInterval: 1s}}"
        return policies(loaded, f"localRateLimit: [{entry}]{extra}").local_rate_limits[0].key

    assert key(5) == key(5, ", timeout: {requestTimeout: 1s}")
    assert key(5) != key(6)


REFUSED = [
    (
        "localRateLimit: [{maxTokens: 1, tokensPerFill: 2, fillInterval: 1s}]",
        "max tokens cannot be less than the",
    ),
    ("localRateLimit: [{fillInterval: 0s}]", "the interval must be longer than 0"),
    ("localRateLimit: [{requests: 1}]", "missing field 'unit'"),
    ("localRateLimit: [{requests: 0, unit: Hours}]", "out of range"),
    ("localRateLimit: {conditional: [{fillInterval: 1s}, {fillInterval: 1s}]}", "only the last entry may be without"),
    ("requestMirror: {backend: {host: 'a:1'}, percentage: 1.5}", "a fraction from 0.0 to 1.0"),
    ("requestMirror: [{backend: {host: 'a:1'}, percentage: 1}, {backend: {host: 'a:1'}, percentage: -1}]", "a fraction from 0.0 to 1.0"),
    ("requestMirror: [" + "{backend: {host: 'a:1'}, percentage: 1}, " * 17 + "]", "17 mirrors, but 16 is the maximum"),
    ("requestMirror: {backend: {backend: x}, percentage: 1}", "no backend is named 'x'"),
    ("requestMirror: {backend: {service: {name: a/b, port: 1}}, percentage: 1}", "there is no service 'a/b'"),
    ("directResponse: {status: 199}", "out of range 200..599"),
    ("directResponse: {status: 600}", "out of range 200..599"),
    ("directResponse: {status: 200, headers: {a: request.pth}}", "request has no field 'pth', did you mean 'path'?"),
    ("directResponse: {status: 200, body: a, bodyExpression: '\"a\"'}", "only one of 'body' and 'bodyExpression' can be set"),
    ("directResponse: {conditional: [{status: 200}, {status: 201}]}", "only the last entry may be without"),
    ("authorization: {rules: ['1 +', {deny: foo}]}", "undeclared reference to 'foo'"),
    ("cors: {allowOrigins: ['a.test']}", "not an origin"),
    ("cors: {allowHeaders: ['a b']}", "not a header name"),
    ("csrf: {additionalOrigins: ['https://*.test']}", "not an origin"),
    ("urlRewrite: {path: {full: '/a?b'}}", "no query or fragment"),
    ("urlRewrite: {authority: {host: 'a b'}}", "not a host"),
    ("requestRedirect: {status: 200}", "not a redirect status"),
    ("requestRedirect: {scheme: ftp}", "neither http nor https"),
    ("transformations: {request: {set: {content-length: '1'}}}", "belongs to the connection"),
    ("transformations: {request: {set: {':status': '1'}}}", "there is no ':status' here"),
    ("transformations: {response: {add: {x: nope}}}", "undeclared reference to 'nope'"),
    ("delay: {duration: nope}", "undeclared reference to 'nope'"),
    ("retry: {codes: [], condition: response.cod == 1}", "response has no field 'cod', did you mean 'code'?"),
    ("jwtAuth: {issuer: a, jwks: '{}'}", "the key set has no list"),
    ("jwtAuth: {issuer: a, jwks: '{\"keys\": [{\"kty\": \"oct\", \"k\": \"c2VjcmV0\"}]}'}", "not for verification"),
    ("jwtAuth: {issuer: a, jwks: {url: 'ftp://x'}}", "url"),
    ("apiKey: {keys: [{keyHash: 'sha256:12'}]}", "64 hexadecimal digits"),
    ("apiKey: {keys: [{key: a}, {key: a}]}", "is defined twice"),
    ("apiKey: {keys: [{key: a, allowedModels: ['a*b']}]}", "one * at the start or the end"),
    ("apiKey: {keys: [{key: a, allowedModels: ['']}]}", "a model has a name"),
    ("apiKey: {keys: [{key: a, allowedModels: ['*', b]}]}", "must be the only entry"),
    ("basicAuth: {htpasswd: 'a:plain'}", "line 1: not a hash of a known kind"),
    ("basicAuth: {htpasswd: ''}", "there are no users"),
    ("directResponse: {status: 200, headers: {'a b': '\"x\"'}}", "not a header name"),
    ("requestHeaderModifier: {set: {'a b': c}}", "not a header name"),
    ("transformations: {request: {set: {'h\u00e9': '\"x\"'}}}", "'h\u00e9' is not a header name"),
    ("urlRewrite: {path: {full: '/\u00e9'}}", "'/\u00e9' is not a path: percent-encode characters outside of ASCII"),
    ("urlRewrite: {authority: {host: 'h\u00e9'}}", "'h\u00e9' is not a host: use its IDNA form"),
    ("requestHeaderModifier: {set: {Content-Length: '5'}}", "set by the gateway alone"),
    ("responseHeaderModifier: {remove: [transfer-encoding]}", "set by the gateway alone"),
    ("directResponse: {status: 200, headers: {content-length: '\"5\"'}}", "set by the gateway alone"),
    ("requestHeaderModifier: {add: {A: b, a: c}}", "the same name is given twice"),
    ('requestHeaderModifier: {set: {a: "b\\nc"}}', "not a header value"),
    ("responseHeaderModifier: {set: {':authority': c}}", "a response has no ':authority'"),
    ("backendAuth: {key: k, passthrough: {}}", "only one of key"),
    ("backendAuth: {key: {value: k, location: {expression: request.path}}}", "only read a credential"),
    ("backendAuth: pilot", "backendAuth"),
    ("backendAuth: {jwtSign: {signingKey: nonsense}}", "not an unencrypted PEM private key"),
    ("backendAuth: {jwtSign: {signingKey: x, claims: {exp: 1}}}", "'exp' is set by the gateway"),
    ("backendAuth: {jwtSign: {signingKey: x, ttl: 500ms}}", "at least 1s"),
    ("backendAuth: {}", "is required"),
    ("localRateLimit: {maxTokens: 5, fillInterval: 1s}", "expected a map with 'conditional' or a list, found a map"),
    ("buffer: {request: {maxBytes: 1KB}}", "not a size such as 4096, 64Ki or 2M: '1KB'"),
]


@pytest.mark.parametrize(("text", "fault"), REFUSED, ids=[case[0] for case in REFUSED])
def test_policies_that_cannot_work_are_refused(
    text: str, fault: str, faults: Callable[..., list[str]]
) -> None:
    found = faults(f"gateways: {{default: {{port: 1}}}}\nroutes: [{{policies: {{{text}}}}}]")
    assert any(fault in line for line in found), found


def test_one_mirror_or_a_list_is_shown_as_it_was_written(loaded: Callable[..., Gateway]) -> None:
    entries = [{"backend": {"host": f"{name}:1"}, "percentage": 0.5} for name in "ab"]
    for written in (entries[0], entries):
        gateway = loaded(f"gateways: {{default: {{port: 1}}}}\nroutes: [{{policies: {{requestMirror: {written}}}}}]")
        policies = gateway.binds[0].listeners[0].routes[0].policies
        assert table.show(policies) == [{"requestMirror": written}]


def test_stronger_options_win_kind_by_kind() -> None:
    weak = BackendOptions(request_timeout_ms=1, connect_timeout_ms=2)
    strong = BackendOptions(request_timeout_ms=3)
    assert weak.under(strong) == BackendOptions(request_timeout_ms=3, connect_timeout_ms=2)
    assert weak.under(NO_OPTIONS) is weak


def test_rules_for_mcp_calls_on_a_route_without_mcp_are_refused(
    faults: Callable[..., list[str]], loaded: Callable[..., Gateway]
) -> None:
    text = "gateways: {g: {port: 1}}\nroutes: [{gateways: g, policies: {mcpAuthorization: {rules: ['true']}}, backends: %s}]"
    assert "mcpAuthorization of the route is only for MCP backends" in faults(text % "[{host: 'h:1'}]")[0]
    assert loaded(text % "[{host: 'h:1'}, {mcp: {targets: [{name: t, mcp: {host: 'http://h:1/mcp'}}]}}]")


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ("nonsense", "not a discovery document: "),
        ("[]", "the metadata is not an object"),
        ('{"issuer": "https://other.example"}', "for another issuer"),
        (
            '{"issuer": "https://idp.example", "authorization_endpoint": "https://a/a", "token_endpoint": "https://a/t", '
            '"jwks_uri": "https://a/k", "token_endpoint_auth_methods_supported": 5}',
            "no list of token_endpoint_auth_methods_supported",
        ),
    ],
)
def test_discovery_in_place_is_looked_at_when_it_is_loaded(
    faults: Callable[..., list[str]], document: str, fault: str
) -> None:
    oidc = {"issuer": "https://idp.example", "clientId": "a", "clientSecret": "b", "redirectURI": "https://a.example/cb"}
    policies = {"oidc": {**oidc, "discovery": document}}
    text = json.dumps({"gateways": {"default": {"port": 1}}, "routes": [{"policies": policies}]})
    [found] = faults(text, {"OIDC_COOKIE_SECRET": "ab" * 32})
    assert found.startswith("routes[0].policies.oidc.discovery: ")
    assert fault in found


@pytest.mark.parametrize(("policies", "http2", "infers"), [
    ("", None, True), ("http: {version: HTTP/1.1}", False, False), ("http: {version: HTTP/2}", True, False),
    ("backendTLS: {alpn: [h2]}", True, False), ("backendTLS: {alpn: [http/1.1]}", False, False),
    ("backendTLS: {alpn: [h2, http/1.1]}", None, True), ("http: {version: HTTP/2}, backendTLS: {}", True, False),
])
def test_the_protocol_of_a_backend(
    policies: str, http2: bool | None, infers: bool, loaded: Callable[..., Gateway]
) -> None:
    text = f"gateways: {{default: {{port: 1}}}}\nroutes: [{{backends: [{{host: 'h:443', policies: {{{policies}}}}}]}}]"
    backend = loaded(text).binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(backend, HostBackend)
    assert backend.endpoint.http2 is http2
    assert (backend.endpoint.pool_key != backend.endpoint.key) is infers


def test_a_protocol_that_alpn_does_not_have_is_a_conflict(faults: Callable[..., list[str]]) -> None:
    text = (
        "gateways: {default: {port: 1}}\nroutes: [{backends: [{host: 'h:443', policies: {http: {version: HTTP/2}, "
        "backendTLS: {alpn: [http/1.1]}}}]}]"
    )
    assert any("'backendTLS.alpn' does not have it" in line for line in faults(text))
