"""Targets over SSE and OpenAPI documents: forms, defaults, what is refused and where."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.config.load import FileSource, TextSource, load
from headgate.errors import ConfigErrors
from headgate.ir.gateway import Gateway
from headgate.ir.mcp import McpBackend, McpTarget, OpenApiTarget, SseTarget

HEAD = "gateways: {default: {port: 1}}\n"
API = '{"openapi": "3.0.0", "paths": {"/a": {"get": {"operationId": "get_a"}}}}'


def target(gateway: Gateway) -> McpTarget:
    backend = gateway.binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(backend, McpBackend)
    return backend.targets[0]


HOSTS = [
    ("host: 'h:8080'", "h:8080", "/sse", False),
    ("host: 'http://h'", "h:80", "/", False),
    ("host: 'https://h/events'", "h:443", "/events", True),
    ("host: h, port: 81, path: /p", "h:81", "/p", False),
    ("backend: b, path: /named", "b.test:9", "/named", False),
    ("backend: b", "b.test:9", "/sse", False),
]


@pytest.mark.parametrize(("spec", "address", "path", "tls"), HOSTS, ids=[case[0] for case in HOSTS])
def test_the_address_forms_of_an_sse_target(
    spec: str, address: str, path: str, tls: bool, loaded: Callable[..., Gateway]
) -> None:
    text = f"mcp: {{targets: [{{name: a, sse: {{{spec}}}}}]}}\nbackends: [{{name: b, host: 'b.test:9'}}]"
    found = target(loaded(text))
    assert isinstance(found, SseTarget)
    assert (found.endpoint.address, found.path, found.endpoint.tls is not None) == (address, path, tls)


@pytest.mark.parametrize(
    "schema",
    [json.dumps(API), API, "{openapi: 3.1, paths: {/a: {get: {operationId: get_a}}}}", json.dumps("openapi: 3.0.0\npaths: {}")],
)
def test_a_document_may_stand_in_the_configuration_as_text_or_as_it_is(
    schema: str, loaded: Callable[..., Gateway]
) -> None:
    found = target(loaded(f"mcp: {{targets: [{{name: a, openapi: {{host: 'h:1', schema: {schema}}}}}]}}"))
    assert isinstance(found, OpenApiTarget)
    assert found.schema.document is not None
    assert found.endpoint.address == "h:1"


def test_a_remote_document_is_not_looked_at_when_loading(loaded: Callable[..., Gateway]) -> None:
    spec = "{host: 'https://h/x', schema: {url: 'https://docs.test/api.json?v=2'}}"
    found = target(loaded(f"mcp: {{targets: [{{name: a, openapi: {spec}}}]}}"))
    assert isinstance(found, OpenApiTarget)
    assert found.schema.endpoint is not None
    assert (found.schema.endpoint.address, found.schema.path) == ("docs.test:443", "/api.json?v=2")


REFUSED = [
    ("sse: {host: h}", "mcp.targets[0].sse.host: not host:port"),
    ("sse: {backend: nope, path: /x}", "mcp.targets[0].sse.backend: no host backend is named 'nope'"),
    ("sse: {host: 'h:1'}, policies: {backendTunnel: {proxy: {service: {name: n/h, port: 1}}}}",
     "mcp.targets[0].policies.backendTunnel.proxy.service: there is no service 'n/h'"),
    ("mcp: {host: 'h:1'}, policies: {transformations: {response: {set: {x-a: '\"1\"'}}}}",
     "mcp.targets[0].policies (transformations of the responses of an MCP target"),
    ("mcp: {host: 'h:1'}, policies: {backendAuth: {aws: {region: EU}}}", "mcp.targets[0].policies.backendAuth.aws"),
    ("mcp: {host: 'h:1'}, policies: {mcpAuthorization: {rules: []}}", "unknown field 'mcpAuthorization'"),
    ("openapi: {host: 'h:1'}", "mcp.targets[0].openapi: missing field 'schema'"),
    ("openapi: {host: 'h:1', schema: {file: nope.json}}", "schema.file: cannot read 'nope.json'"),
    ("openapi: {host: 'h:1', schema: {url: 'ftp://x'}}", "mcp.targets[0].openapi.schema.url"),
    ("openapi: {host: 'h:1', schema: 'no: openapi'}", "mcp.targets[0].openapi.schema: 'openapi' is not 3.0"),
    ("openapi: {host: 'h:1', schema: {openapi: 3.0.0, paths: {/a: {get: {}}}}}", "paths[/a].get: there is no operationId"),
    ("openapi: {host: 'h:1', schema: {openapi: 3.0.0, servers: [{url: /a}, {url: /b}], paths: {/a: {get: {operationId: a}}}}}",
     "servers: there are several servers"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "fault"), REFUSED, ids=[case[0][:60] for case in REFUSED])
def test_targets_that_cannot_work_are_refused(spec: str, fault: str, faults: Callable[..., list[str]]) -> None:
    found = faults(f"mcp:\n  targets:\n  - {{name: a, {spec}}}")
    assert any(fault in line and line.endswith("(3)") for line in found), found


def test_a_fault_in_a_file_tells_its_name_and_the_file_is_watched(tmp_path: Path) -> None:
    api = tmp_path / "api.yaml"
    configuration = tmp_path / "c.yaml"
    configuration.write_text(HEAD + "mcp: {targets: [{name: a, openapi: {host: 'h:1', schema: {file: api.yaml}}}]}")
    api.write_text("openapi: 3.0.0\npaths:\n  /x:\n\tget: {}\n")
    with pytest.raises(ConfigErrors) as caught:
        load(FileSource(str(configuration)), environ={})
    assert f"{api}: " in str(caught.value)
    assert f"{api}:4" in str(caught.value)
    assert "c.yaml:2" in str(caught.value)
    api.write_text("openapi: 3.0.0\npaths: {/x: {post: {operationId: up, requestBody: {required: true, content: {a/b: {}}}}}}\n")
    found = load(FileSource(str(configuration)), environ={})
    assert str(api) in found.watched_files
    assert found.warnings == (
        "mcp.targets[0].openapi.schema: paths[/x].post: a body of type a/b cannot be sent",
    )


def test_a_document_in_the_text_is_no_secret_and_an_environment_variable_in_a_file_is_left_alone() -> None:
    text = HEAD + "mcp: {targets: [{name: a, openapi: {host: 'h:1', schema: {openapi: 3.0.0, paths: {}, x-a: $K}}}]}"
    found = target(load(TextSource(text), environ={"K": "value"}).gateway)
    assert isinstance(found, OpenApiTarget)
    assert json.loads(found.schema.document or "")["x-a"] == "value"


SERVICE = """
services: [{name: s, namespace: n, hostname: s.test, ports: {80: 80}}]
workloads:
- {uid: a, name: a, namespace: n, workloadIps: [10.0.0.1], services: {n/s.test: {80: 8080}}}
- {uid: b, name: b, namespace: n, workloadIps: ["::1"], services: {n/s.test: {80: 8081}}}
- {uid: c, name: c, namespace: n, workloadIps: [10.0.0.3], status: unhealthy, services: {n/s.test: {80: 8080}}}
"""
BACKENDS = {
    "target": "mcp: {{targets: [{{name: x, mcp: {{host: {}, port: {}, path: /mcp}}}}]}}",
    "provider": "ai: {{name: x, provider: {{openAI: {{}}}}, hostOverride: '{}:{}'}}",
}


@pytest.mark.parametrize("kind", BACKENDS)
@pytest.mark.parametrize(
    ("host", "port", "places"),
    [("s.test", 80, (("10.0.0.1", 8080), ("::1", 8081))), ("s.test", 81, None), ("other.test", 80, None)],
)
def test_the_name_of_a_service_stands_for_its_workloads(kind: str, host: str, port: int, places: object) -> None:
    backend = BACKENDS[kind].format(host, port)
    text = f"binds: [{{port: 1, listeners: [{{routes: [{{backends: [{{{backend}}}]}}]}}]}}]\n{SERVICE}"
    found = load(TextSource(text), environ={}).gateway.binds[0].listeners[0].routes[0].backends[0].backend
    endpoint = found.targets[0].endpoint if isinstance(found, McpBackend) else found.groups[0][0].provider.endpoint  # type: ignore[union-attr]
    assert endpoint.places == places
    assert endpoint.address == f"{host}:{port}"
    assert ("#at " in endpoint.key) == (places is not None)
