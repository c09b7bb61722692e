"""`mcpGuardrails` from the file to the IR and the dump, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.config.load import TextSource, load
from headgate.config.policy.mcp_guardrails import dump
from headgate.ir.gateway import Gateway
from headgate.ir.mcp import McpBackend
from headgate.ir.mcp_guardrails import GuardrailProcessor

TEXT = """
gateways: {default: {port: 1}}
backends:
- {name: policies, host: "policy.test:443", policies: {backendTLS: {hostname: other.test}, http: {requestTimeout: 3s}}}
mcp:
  targets: [{name: a, stdio: {cmd: x}}]
  policies:
    mcpGuardrails:
      processors:
%s
"""


def processors(text: str, load_one: Callable[..., Gateway]) -> tuple[GuardrailProcessor, ...]:
    lines = "\n".join(f"      - {line}" for line in text.strip().splitlines())
    backend = load_one(TEXT % lines).binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(backend, McpBackend)
    assert not backend.plain
    return backend.guardrails


def test_forms(loaded: Callable[..., Gateway]) -> None:
    found = processors(
        """
{kind: remote, host: "127.0.0.1:9"}
{kind: remote, url: "https://policy.test", methods: {tools/call: full, "*": off}, failureMode: FailOpen}
{kind: remote, backend: policies, metadata: {a: jwt.sub}, requestHeaders: {allowed: [X-A], disallowed: [X-B]}}
{kind: remote, host: "a.test:1", grpc: {checkResponse: /a.B/C}, policies: {http: {requestTimeout: 1s}, backendAuth: {key: k}}}
""",
        loaded,
    )
    plain, secure, named, last = found
    assert (plain.fail_open, plain.timeout_ms, plain.methods, plain.check_request) == (
        False, 10_000, (), "/gateway.mcp.v1.ExtMcp/CheckRequest",
    )  # fmt: skip
    [(place, _)] = secure.service.places
    assert place.tls is not None
    assert (place.port, place.tls.alpn, secure.fail_open) == (443, ("h2",), True)
    assert secure.methods == (("tools/call", "full"), ("*", "off"))
    [(place, _)] = named.service.places
    assert place.tls is not None
    assert (place.tls.hostname, place.tls.alpn, named.timeout_ms) == ("other.test", ("h2",), 3000)
    assert (named.allowed, named.disallowed, named.metadata) == (("x-a",), ("x-b",), (("a", "jwt.sub"),))
    assert (last.check_response, last.timeout_ms) == ("/a.B/C", 1000)
    shown = dump(found)["processors"]
    assert [one["failureMode"] for one in shown] == ["failClosed", "failOpen", "failClosed", "failClosed"]
    assert "key: k" not in str(shown)
    assert shown[2]["backend"] == "policies"


BAD = [
    ('{kind: remote, host: "a:1", url: "http://a"}', "only one of service, host, backend, url is allowed"),
    ("{kind: remote}", "one of service, host, backend, url is required"),
    ('{kind: remote, url: "http://a/path"}', "cannot have a path"),
    ('{kind: local, host: "a:1"}', "remote"),
    ('{kind: remote, host: "a:1", methods: {tools/call: always}}', "always"),
    ('{kind: remote, host: "a:1", metadata: {a: "1 +"}}', "metadata"),
    ('{kind: remote, host: "a:1", metadata: {a: nobody.here}}', "nobody"),
    ('{kind: remote, host: "a:1", failureMode: maybe}', "failureMode"),
    ('{kind: remote, host: "a:1", grpc: {checkRequest: no}}', "a gRPC method must be /package.Service/Method"),
    ('{kind: remote, host: "a:1", policies: {http: {version: "HTTP/1.1"}}}', "gRPC needs HTTP/2"),
    ('{kind: remote, host: "a:1", policies: {http: {requestTimeout: 0s}}}', "every check would fail"),
    ('{kind: remote, host: "a:1", policies: {backendTLS: {alpn: [http/1.1]}}}', "must include h2"),
    ('{kind: remote, host: "a:1", policies: {requestHeaderModifier: {set: {grpc-timeout: 1S}}}}', "set by gRPC itself"),
    ('{kind: remote, host: "a:1", requestHeaders: {allowed: ["a b"]}}', "a b"),
    ("{kind: remote, backend: nobody}", "nobody"),
    ("{kind: remote, service: {name: default/x, port: 1}}", "no service"),
]


@pytest.mark.parametrize(("line", "words"), BAD, ids=[line for line, _ in BAD])
def test_what_is_refused(faults: Callable[..., list[str]], line: str, words: str) -> None:
    found = faults(TEXT % f"      - {line}")
    assert any(words in one for one in found), found
    assert all("processors[0]" in one for one in found), found
    assert len(found) == 1, found


def test_how_many(faults: Callable[..., list[str]], loaded: Callable[..., Gateway]) -> None:
    line = '{kind: remote, host: "a:1"}\n'
    assert len(processors(line * 16, loaded)) == 16
    assert faults(TEXT % "\n".join([f"      - {line.strip()}"] * 17))
    assert faults((TEXT % "").replace("processors:\n", "processors: []\n"))
    for key, entries in (("methods", "m%d: full"), ("metadata", "m%d: '1'")):
        many = ", ".join(entries % number for number in range(65))
        [fault] = faults(TEXT % f'      - {{kind: remote, host: "a:1", {key}: {{{many}}}}}')
        assert "at most 64 entries" in fault


def test_places_and_warnings(faults: Callable[..., list[str]]) -> None:
    checks = 'mcpGuardrails: {processors: [{kind: remote, host: "a:1"}]}'
    for text in (
        f'routes: [{{policies: {{{checks}}}, backends: [{{host: "b:1"}}]}}]',
        f'routes: [{{backends: [{{host: "b:1", policies: {{{checks}}}}}]}}]',
        f'backends: [{{name: b, host: "b:1", policies: {{{checks}}}}}]\nroutes: []',
    ):
        found = faults("gateways: {default: {port: 1}}\n" + text)
        assert any("mcpGuardrails" in one and "for MCP backends" in one for one in found), (text, found)
    one = '      - {kind: remote, host: "a:1", methods: {"a*b": full, ping: off}}'
    found = load(TextSource(TEXT % one)).warnings
    assert any("can never match" in text for text in found), found
    one = '      - {kind: remote, host: "a:1", methods: {ping: off}}'
    assert any("never runs" in text for text in load(TextSource(TEXT % one)).warnings)
