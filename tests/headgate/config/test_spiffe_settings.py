"""Where the SPIFFE Workload API is, and what excludes an identity from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from headgate.config.load import FileSource, TextSource, load
from headgate.config.source_reader import SourceReader
from headgate.config.spiffe_settings import endpoint_of
from headgate.ir.backend import HostBackend
from headgate.ir.gateway import Gateway

API = "config: {spiffe: {endpoint: 'unix:///run/agent.sock'}}\n"
LISTENER = "gateways: {default: {port: 1, protocol: HTTPS, tls: {spiffe: {}}}}\n"


@pytest.mark.parametrize(
    ("text", "path", "host", "port"),
    [
        ("unix:///run/agent.sock", "/run/agent.sock", "", 0),
        ("unix:/run/agent.sock", "/run/agent.sock", "", 0),
        ("UNIX:///run/a%20b", "/run/a b", "", 0),
        ("tcp://127.0.0.1:8000", None, "127.0.0.1", 8000),
        ("tcp://[::1]:8000", None, "::1", 8000),
    ],
)
def test_endpoints(text: str, path: str | None, host: str, port: int) -> None:
    found = endpoint_of(text)
    assert (found.text, found.unix_path, found.host, found.port) == (text, path, host, port)


@pytest.mark.parametrize(
    "text",
    ["", "/run/agent.sock", "unix:", "unix://", "unix:///", "unix://run/agent.sock", "unix:agent.sock", "unix:///a?b", "tcp://localhost:1",
     "tcp://127.0.0.1", "tcp://127.0.0.1:0", "tcp://127.0.0.1:65536", "tcp://127.0.0.1:1/a", "http://127.0.0.1:1", "tcp:1"],
)  # fmt: skip
def test_endpoints_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="not unix:///path or tcp://address:port"):
        endpoint_of(text)


def of(text: str, environ: Mapping[str, str]) -> Gateway:
    return load(TextSource(text), environ=environ).gateway


def test_the_file_wins_over_the_variable() -> None:
    elsewhere = {"SPIFFE_ENDPOINT_SOCKET": "unix:///elsewhere"}
    for text, environ, path in (
        (API, elsewhere, "/run/agent.sock"),
        ("", elsewhere, "/elsewhere"),
        ("config: {spiffe: {}}\n", elsewhere, "/elsewhere"),
        ("", {}, None),
        ("", {"SPIFFE_ENDPOINT_SOCKET": "nonsense"}, None),
    ):
        found = of(text + "gateways: {default: {port: 1}}", environ).process.workload_api
        assert (None if found is None else found.unix_path) == path


def test_it_is_known_who_needs_it() -> None:
    backend = "gateways: {default: {port: 1}}\nroutes: [{backends: [{host: 'h:1', policies: {backendTLS: {spiffe: {}}}}]}]"
    assert not of(API + "gateways: {default: {port: 1}}", {}).spiffe
    assert of(API + LISTENER, {}).spiffe
    assert of(API + backend, {}).spiffe


POLICY = "policies: {backendTLS: {spiffe: {}}}"
USERS = {
    "a named backend": f"backends: [{{name: b, host: 'h:1', {POLICY}}}]\nroutes: [{{backends: [{{backend: /b}}]}}]",
    "a route": f"routes: [{{backends: [{{host: 'h:1'}}], {POLICY}}}]",
    "a model": "llm: {models: [{name: m, provider: openai, params: {apiKey: k}, backendTLS: {spiffe: {}}}]}",
    "a target": f"mcp: {{targets: [{{name: t, mcp: {{host: 'http://h:1/mcp'}}, {POLICY}}}]}}",
    "all targets": f"mcp: {{targets: [{{name: t, mcp: {{host: 'http://h:1/mcp'}}}}], {POLICY}}}",
    "a policy service": f"routes: [{{backends: [{{host: 'h:1'}}], policies: {{extAuthz: {{host: 'h:2', protocol: {{grpc: {{}}}}, {POLICY}}}}}}}]",
    "a targeted policy": "routes: [{name: r, backends: [{host: 'h:1'}]}]\npolicies: [{name: {name: p, namespace: default}, "
    "target: {route: {name: r, namespace: default}}, policy: {backendTLS: {spiffe: {}}}}]",
    "a group": "routes: [{matches: [{path: {pathPrefix: /}}], backends: [{routeGroup: g}]}]\n"
    f"routeGroups: [{{name: g, routes: [{{backends: [{{host: 'h:1', {POLICY}}}]}}]}}]",
}


@pytest.mark.parametrize("user", USERS)
def test_it_is_noticed_wherever_it_stands(user: str) -> None:
    head = API + "gateways: {default: {port: 1}}\n"
    assert of(head + USERS[user], {}).spiffe
    assert not of(head + USERS[user].replace("spiffe: {}", "hostname: a"), {}).spiffe


def test_a_route_that_comes_to_need_it_is_noticed(tmp_path: Path) -> None:
    """Where routes are read one by one."""
    path = tmp_path / "c.yaml"
    routes = [f"- name: r{n}\n  matches: [{{path: {{exact: /{n}}}}}]\n  backends: [{{host: 'h:1'}}]\n" for n in range(40)]
    head = f"{API}gateways: {{default: {{port: 1}}}}\nroutes:\n"
    path.write_text(head + "".join(routes))
    reader = SourceReader(FileSource(str(path)))
    assert not reader.load().gateway.spiffe
    plain = routes[7]
    for route, wanted in ((plain.replace("'h:1'", "'h:1', policies: {backendTLS: {spiffe: {}}}"), True), (plain, False)):
        routes[7] = route
        path.write_text(head + "".join(routes))
        assert reader.load().gateway.spiffe is wanted
    assert reader.whole == 1


def test_a_listener_has_nothing_else(loaded: Callable[..., Gateway]) -> None:
    tls = loaded(API + LISTENER).binds[0].listeners[0].tls
    assert tls is not None
    assert (tls.source, tls.cert_file, tls.cert_pem, tls.root_pem) == ("spiffe", None, b"", None)


def backend(tls: str) -> str:
    return f"{API}gateways: {{default: {{port: 1}}}}\nroutes: [{{backends: [{{host: 'h:443', policies: {{backendTLS: {tls}}}}}]}}]"


def test_a_backend_has_names(loaded: Callable[..., Gateway]) -> None:
    text = backend("{spiffe: {}, hostname: a.test, subjectAltNames: ['spiffe://td/a', 'spiffe://td/b']}")
    found = loaded(text).binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(found, HostBackend)
    tls = found.endpoint.tls
    assert tls is not None
    assert (tls.spiffe, tls.hostname, tls.subject_alt_names) == (True, "a.test", ("spiffe://td/a", "spiffe://td/b"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("config: {spiffe: {endpoint: /run/agent.sock}}\n", "config.spiffe.endpoint: not unix:///path or tcp://address:port (1)"),
        (LISTENER, "tls.spiffe: nothing says where the SPIFFE Workload API is: set config.spiffe.endpoint or SPIFFE_ENDPOINT_SOCKET"),
        *((API + LISTENER.replace("spiffe: {}", f"spiffe: {{}}, {entry}"), f"tls.{entry.partition(':')[0]}: not with 'spiffe'")
          for entry in ("cert: a", "key: a", "root: a", "mode: dynamicCa")),
        *((backend(f"{{spiffe: {{}}, {entry}}}"), f"backendTLS.{entry.partition(':')[0]}: not with 'spiffe'")
          for entry in ("cert: a", "key: a", "root: a", "insecure: true", "insecureHost: true")),
        (backend("{spiffe: {}, subjectAltNames: [a.test]}"), "with 'spiffe', the names are SPIFFE IDs"),
        (backend("{spiffe: {}, subjectAltNames: ['spiffe://a']}"), "with 'spiffe', the names are SPIFFE IDs"),
        (backend("{spiffe: {}, subjectAltNames: ['spiffe://a/x', 'spiffe://b/x']}"), "SPIFFE IDs of one trust domain"),
    ],
)  # fmt: skip
def test_faults(text: str, fault: str, faults: Callable[..., list[str]]) -> None:
    assert any(fault in line for line in faults(text)), faults(text)
