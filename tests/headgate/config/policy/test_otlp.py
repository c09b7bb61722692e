"""Traces and log records for a collector: where the file and the environment name one, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headgate.config.dump import frontend_policies
from headgate.ir.gateway import Gateway
from headgate.ir.telemetry import OtlpLog, Tracing

Loaded = Callable[..., Gateway]
Faults = Callable[..., list[str]]
HOST = "host: 127.0.0.1:4317"


def traces(loaded: Loaded, text: str, **environ: str) -> Tracing:
    found = loaded(text, environ).frontend.tracing
    assert found is not None
    return found


def place(tracing: Tracing | OtlpLog) -> tuple[str, int, bool, str, str]:
    [(endpoint, _)] = tracing.target.service.places
    return endpoint.host or "", endpoint.port, endpoint.tls is not None, tracing.target.protocol, tracing.target.path


def test_nothing_is_exported_by_default(loaded: Loaded) -> None:
    frontend = loaded("").frontend
    assert (frontend.tracing, frontend.access_log.otlp) == (None, None)


def test_the_defaults_of_traces(loaded: Loaded) -> None:
    found = traces(loaded, f"frontendPolicies: {{tracing: {{{HOST}}}}}")
    assert place(found) == ("127.0.0.1", 4317, False, "grpc", "/v1/traces")
    assert (found.random_sampling, found.client_sampling, found.filter) == (0.0, 1.0, None)
    assert dict(found.resource)["service.name"] == "headgate"


@pytest.mark.parametrize(
    ("written", "wanted"),
    [("true", 1.0), ("false", 0.0), ("0.25", 0.25), ("'0.25'", 0.25), ("7", 1.0), ("-1", 0.0),
     ("request.path == '/x'", "request.path == '/x'")],
)  # fmt: skip
def test_a_share_or_an_expression_chooses(loaded: Loaded, written: str, wanted: Any) -> None:
    text = f'frontendPolicies: {{tracing: {{{HOST}, randomSampling: {written}, clientSampling: {written}}}}}'
    found = traces(loaded, text.replace(written, f'"{written}"') if "request" in written else text)
    assert (found.random_sampling, found.client_sampling) == (wanted, wanted)


def test_what_spans_say(loaded: Loaded) -> None:
    found = traces(
        loaded,
        f"frontendPolicies: {{tracing: {{{HOST}, attributes: {{a: \"'x'\"}}, resources: {{b: \"'y'\"}}, remove: [c], "
        "filter: 'true', protocol: http, path: /own, policies: {http: {requestTimeout: 3s}}}}",
    )
    assert (found.attributes, found.resources, found.remove) == ((("a", "'x'"),), (("b", "'y'"),), ("c",))
    assert (found.filter, found.target.timeout_ms) == ("true", 3000)
    assert place(found) == ("127.0.0.1", 4317, False, "http", "/own")


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ("randomSampling: 'jwt.('", "randomSampling"),
        ("randomSampling: .nan", "randomSampling"),
        ("filter: 'x ('", "filter"),
        ("attributes: {a: 'x ('}", "attributes.a"),
        ("path: own", "path"),
        ("backend: none", "backend"),
    ],
)
def test_what_is_wrong_is_told_where_it_is(faults: Faults, fields: str, fault: str) -> None:
    target = "" if fields.startswith("backend") else f"{HOST}, "
    assert faults(f"frontendPolicies: {{tracing: {{{target}{fields}}}}}")[0].startswith(f"frontendPolicies.tracing.{fault}")


def test_the_log(loaded: Loaded) -> None:
    text = f"frontendPolicies: {{accessLog: {{otlp: {{{HOST}, filter: 'true', fields: {{add: {{a: '1'}}, remove: [b]}}}}}}}}"
    found = loaded(text).frontend.access_log.otlp
    assert found is not None
    assert (found.filter, found.add, found.remove) == ("true", (("a", "1"),), ("b",))
    assert place(found) == ("127.0.0.1", 4317, False, "grpc", "/v1/logs")


OLD = "config: {tracing: {otlpEndpoint: 'http://c.test:9', headers: {authorization: canary}, fields: {add: {a: '1'}, remove: [b]}, randomSampling: true}}"


def test_the_older_form(loaded: Loaded, faults: Faults) -> None:
    found = traces(loaded, OLD)
    assert place(found) == ("c.test", 9, False, "grpc", "/v1/traces")
    assert (found.attributes, found.remove, found.random_sampling) == ((("a", "1"),), ("b",), 1.0)
    assert [(name, ref.secret.reveal()) for name, ref in found.target.headers] == [("authorization", "canary")]
    assert "canary" not in repr(frontend_policies(loaded(OLD).frontend))
    both = f"{OLD}\nfrontendPolicies: {{tracing: {{{HOST}}}}}"
    assert faults(both) == ["config.tracing: 'frontendPolicies.tracing' is set as well (1)"]
    assert "expected the URL of a collector" in faults("config: {tracing: {randomSampling: true}}")[0]
    assert "otlpEndpoint" in faults("config: {tracing: {otlpEndpoint: 'ftp://x'}}")[0]


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({"OTLP_ENDPOINT": "http://e.test:1"}, ("e.test", 1, False, "grpc", "/v1/traces")),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://e.test"}, ("e.test", 4317, False, "grpc", "/v1/traces")),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://e.test/x", "OTLP_PROTOCOL": "http/protobuf"},
         ("e.test", 4318, False, "http", "/x/v1/traces")),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://e.test/own", "OTLP_PROTOCOL": "http"},
         ("e.test", 443, True, "http", "/own")),
        ({"OTLP_ENDPOINT": "http://e.test:1", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://other.test"},
         ("e.test", 1, False, "grpc", "/v1/traces")),
    ],
)  # fmt: skip
def test_the_environment_names_a_collector(loaded: Loaded, environ: dict[str, str], wanted: Any) -> None:
    assert place(traces(loaded, "", **environ)) == wanted
    assert place(traces(loaded, OLD, **environ)) == wanted, "and wins over `config.tracing`"


def test_fields_and_attributes_of_the_environment(loaded: Loaded) -> None:
    environ = {
        "OTLP_ENDPOINT": "e.test:1", "OTEL_EXPORTER_OTLP_HEADERS": "X-A=b%20c, x-d=e", "OTEL_SERVICE_NAME": "shop",
        "OTEL_RESOURCE_ATTRIBUTES": "zone=a,service.name=other", "POD_NAME": "p", "NAMESPACE": "n",
    }  # fmt: skip
    found = traces(loaded, "", **environ)
    assert [(name, ref.secret.reveal()) for name, ref in found.target.headers] == [("x-a", "b c"), ("x-d", "e")]
    told = dict(found.resource)
    wanted = {"service.name": "shop", "zone": "a", "k8s.pod.name": "p", "service.namespace": "n"}
    assert {key: told.get(key) for key in wanted} == wanted
    as_json = traces(loaded, "", OTLP_ENDPOINT="e.test:1", OTLP_HEADERS='{"x-a": "b"}')
    assert [(name, ref.secret.reveal()) for name, ref in as_json.target.headers] == [("x-a", "b")]


@pytest.mark.parametrize(
    ("environ", "fault"),
    [
        ({"OTLP_ENDPOINT": "ftp://x"}, "OTLP_ENDPOINT"),
        ({"OTLP_ENDPOINT": "http://x", "OTLP_PROTOCOL": "http/json"}, "OTLP_PROTOCOL"),
        ({"OTLP_ENDPOINT": "http://x", "OTLP_HEADERS": "canary"}, "OTLP_HEADERS"),
    ],
)
def test_a_wrong_variable_is_named(faults: Faults, environ: dict[str, str], fault: str) -> None:
    found = faults("", environ)
    assert fault in found[0]
    assert "canary" not in found[0]
