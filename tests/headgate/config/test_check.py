"""The checker: all faults at once, each with its place, and no quarrel with the JSON schema."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import effort
import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.config.check import BAD, check
from headgate.config.dump import Runtime, dump
from headgate.config.load import TextSource, load
from headgate.config.schema import schema
from headgate.config.shape.root import ROOT
from headgate.document.nodes import Report
from headgate.document.read import read
from headgate.errors import ConfigError, ConfigErrors, Problem

VALIDATOR = jsonschema.Draft202012Validator(schema())
# Documents are made from a seed: thousands of choices that hypothesis makes itself cost ten times as much.
SEEDS = st.integers(0, 2**64 - 1)
# What a schema can say; the rest (host names, patterns, addresses) is a fault of value.
STRUCTURAL = {Problem.UNKNOWN_FIELD, Problem.TYPE, Problem.MISSING, Problem.CONFLICT}


def found(text: str, environ: dict[str, str] | None = None) -> list[ConfigError]:
    report = Report("config.yaml")
    check(ROOT, read(text, "config.yaml", environ or {}), report)
    return list(report.in_order())


def lines(text: str) -> list[str]:
    return [str(fault) for fault in found(text)]


def test_everything_wrong_is_told_at_once_with_path_file_and_line() -> None:
    text = """gateways:
  default: {port: "3000"}
routes:
- name: a
  policies:
    cors: {allowOrigin: ['*']}
    timeout: {requestTimeout: 5x}
    foo: 1
  backends: [{host: 1.2.3.4:80, mcp: {targets: [{name: a}]}}, {weight: 1}]
"""
    kinds = "host, backend, mcp, ai, aws, service, internal, dynamic, routeGroup"
    assert lines(text) == [
        "gateways.default.port: expected an integer, found a string (config.yaml:2)",
        "routes[0].policies.cors: unknown field 'allowOrigin', did you mean 'allowOrigins'? (config.yaml:6)",
        "routes[0].policies.timeout.requestTimeout: not a duration such as 300ms, 5s or 1h30m: '5x' (config.yaml:7)",
        "routes[0].policies: unknown field 'foo' (config.yaml:8)",
        f"routes[0].backends[0]: only one of {kinds} is allowed, found host, mcp (config.yaml:9)",
        "routes[0].backends[0].mcp.targets[0]: one of mcp, stdio, sse, openapi is required (config.yaml:9)",
        f"routes[0].backends[1]: one of {kinds} is required (config.yaml:9)",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a: 1",
        "[]",
        "text",
        "routes: {}",
        "gateways: []",
        "config: {workerThreads: 1.5}",
        "config: {enableIpv6: 'true'}",
        "routes: [{hostnames: null}]",
        "routes: [{matches: [{method: 1}]}]",
        "config: {session: {}}",
        "frontendPolicies: {proxy: {}, proxyProtocol: {}}",
        "config: {backend: {keepalives: {retries: 65}}}",
        "config: {backend: {keepalives: {retries: 0}}}",
    ],
)
def test_wrong_documents_are_faults_and_not_merely_unsupported(text: str) -> None:
    assert any(fault.problem is not Problem.UNSUPPORTED for fault in found(text))


@pytest.mark.parametrize(
    "text",
    [
        "config: {customFunctions: '', sensitiveHeaders: [], dns: {}, tracing: null}",
        "config: {metrics: {fields: {add: {}}}, storage: {mode: file}, histograms: classic}",
        "frontendPolicies: {connect: {mode: deny}, http: {http1HeaderCase: lowercase}, accessLog: {add: {}}}",
        "frontendPolicies: {tls: {minVersion: TLS_V1_2, maxVersion: TLS_V1_3}}",
        "mcp: {targets: [{name: a, stdio: {cmd: x}}], statefulMode: Stateful, dnsRebindingProtection: false}",
        "tcpRoutes: []\nrouteGroups: []\nservices: []\nui: null",
        "llm: {models: [{name: a, provider: openai, params: {tokenize: false}, overrides: {}, matches: []}]}",
    ],
)
def test_fields_of_later_with_a_value_that_changes_nothing_are_accepted(text: str) -> None:
    assert lines(text) == []


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("binds: [{listeners: [], tunnelProtocol: hboneWaypoint}]", "binds[0].tunnelProtocol = hboneWaypoint"),
        ("config: {xdsAddress: 'a:1'}", "config.xdsAddress"),
    ],
)
def test_known_but_unbuilt_fields_are_refused_by_name(text: str, path: str) -> None:
    assert lines(text) == [f"not supported yet: {path} (config.yaml:1)"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("routes: [{policies: {rateLimit: []}}]", "unknown field 'rateLimit', did you mean 'localRateLimit'?"),
        ("config: {xdsAdress: x}", "unknown field 'xdsAdress' (config.yaml:1)"),
        ("routes: [{names: a, name: b}]", "unknown field 'names', did you mean 'namespace'?"),
        ("virtualKeys: {teams: [{name: t, limits: [{usd: 5, dollars: 5, per: day}]}]}", "unknown field 'usd' ("),
        ("llm: {models: [{name: a, provider: openai, apiKey: k}]}", "unknown field 'apiKey', did you mean 'params.apiKey'?"),
        ("llm: {models: [{name: a, provider: openai, api_base: k}]}", "unknown field 'api_base', did you mean 'params.baseUrl'?"),
        ("llm: {virtualKeys: {}, models: []}", "unknown field 'virtualKeys': it stands at the top of the file"),
        ("model_list: []", "unknown field 'model_list': `headgate import litellm FILE` makes a configuration of such a file"),
        ("mcpServers: {}", "unknown field 'mcpServers': `headgate import mcp-servers FILE` makes a configuration of such a file"),
        ("virtualKeys: {alerts: {url: 'http://a', timeout: 5}}", "expected a string, found an integer: not a duration such as 300ms, 5s or 1h30m"),
        ("binds: [{port: 1, listeners: [], tunnelProtocol: hboneWaypont}]", "(one of direct, proxy, connect, hboneGateway)"),
    ],
)
def test_what_is_offered_can_be_used(text: str, hint: str) -> None:
    [line] = lines(text)
    assert hint in line


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("mcp: {targets: [{name: a, url: 'http://a'}]}", "unknown field 'url', did you mean 'mcp.host'?"),
        ("mcp: {targets: [{name: a, command: npx}]}", "unknown field 'command', did you mean 'stdio.cmd'?"),
        ("mcp: {targets: [{name: a, args: [x]}]}", "unknown field 'args', did you mean 'stdio.args'?"),
        ("virtualKeys: {teams: [{name: t, limits: [{usd: 5, per: day}]}]}", "unknown field 'usd', did you mean 'dollars'?"),
    ],
)
def test_words_of_other_programs_are_told_with_ours(text: str, hint: str) -> None:
    assert any(hint in line for line in lines(text))


def test_enumerations_are_read_in_camel_and_pascal_case() -> None:
    for word in ("failClosed", "FailClosed"):
        text = f"mcp: {{targets: [{{name: a, stdio: {{cmd: x}}}}], failureMode: {word}}}"
        assert lines(text) == []
    assert "did you mean" in lines("mcp: {targets: [{name: a, stdio: {cmd: x}}], failureMode: failclose}")[0]


def test_a_whole_variable_may_become_a_number_or_a_bool() -> None:
    text = "config: {enableIpv6: $B}\ngateways: {a: {port: '${P}'}}"
    assert found(text, {"B": "true", "P": "3000"}) == []
    assert "expected an integer, found a string" in str(found(text, {"B": "true", "P": "30x"})[0])
    assert "expected an integer" in str(found("gateways: {a: {port: '3${P}'}}", {"P": "000"})[0])


@pytest.mark.parametrize(
    "text",
    [
        "llm: {models: [{name: a, provider: openai, params: {apiKey: [canary-1]}}]}",
        'llm: {models: [{name: a, provider: openai, params: {apiKey: "canary-1\\u0001"}}]}',
        "config: {session: {key: canary-1}}",
        "config: {adminAddr: $SECRET, enableIpv6: $SECRET, histograms: $SECRET}",
        "routes: [{hostnames: ['a $SECRET']}]",
        "config: {caAuthToken: canary-1, database: {url: 5}}",
    ],
)
def test_faults_never_quote_secrets_or_expanded_values(text: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        load(TextSource(text), environ={"SECRET": "canary-1"})
    assert "canary-1" not in str(caught.value)
    assert "canary-1" not in repr(caught.value.errors)


def test_a_value_is_bad_when_it_cannot_be_read() -> None:
    report = Report("c")
    assert check(ROOT, read("[]", "c"), report) is BAD
    assert report.errors[0].problem is Problem.TYPE


@settings(deadline=None, max_examples=effort.examples(500))
@given(seed=SEEDS)
def test_what_the_shape_makes_is_admitted_by_schema_and_checker(
    seed: int, documents: Callable[[random.Random], Any]
) -> None:
    document = documents(random.Random(seed)).of(ROOT)
    text = json.dumps(document)
    VALIDATOR.validate(document)
    assert [str(fault) for fault in found(text) if fault.problem is not Problem.UNSUPPORTED] == []


@pytest.mark.parametrize("schema", [{"url": {}}, {"file": "a", "openapi": "3.0.0"}, {"file": "a", "url": "http://b"}])
def test_a_document_in_place_is_told_from_a_reference_to_one(schema: dict[str, Any]) -> None:
    document = {"mcp": {"targets": [{"name": "a", "openapi": {"host": "h:1", "schema": schema}}]}}
    assert not VALIDATOR.is_valid(document)
    assert [fault for fault in found(json.dumps(document)) if fault.problem in STRUCTURAL]


@settings(deadline=None, max_examples=effort.examples(800))
@given(seed=SEEDS)
def test_schema_and_checker_agree_on_broken_documents(
    seed: int, documents: Callable[[random.Random], Any]
) -> None:
    maker = documents(random.Random(seed))
    document = maker.broken(maker.of(ROOT))
    refused = [fault for fault in found(json.dumps(document)) if fault.problem is not Problem.UNSUPPORTED]
    if VALIDATOR.is_valid(document):
        assert [str(fault) for fault in refused if fault.problem in STRUCTURAL] == []
    else:
        assert refused, document


@settings(deadline=None, max_examples=effort.examples(400))
@given(seed=SEEDS, break_it=st.booleans())
def test_loading_never_raises_anything_but_config_errors(
    seed: int, break_it: bool, documents: Callable[[random.Random], Any]
) -> None:
    maker = documents(random.Random(seed))
    document = maker.of(ROOT)
    text = json.dumps(maker.broken(document) if break_it else document)
    caught: ConfigErrors | None = None
    try:
        load(TextSource(text), environ={})
    except ConfigErrors as error:
        caught = error
    assert caught is None or all(fault.message or fault.path for fault in caught.errors)
    assert caught is None or caught.errors


def test_ten_thousand_faults_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("routes:\n" + "- {zzz: 1}\n" * 10_000)
    assert len(found(path.read_text())) == 200


# Also a legal session key, so that a document with one can load.
CANARY = "dead" * 16


@settings(deadline=None, max_examples=effort.examples(400))
@given(seed=SEEDS, break_it=st.booleans())
def test_a_marker_in_every_secret_field_shows_nowhere(
    seed: int, break_it: bool, documents: Callable[..., Any]
) -> None:
    maker = documents(random.Random(seed), CANARY)
    document = maker.of(ROOT)
    text = json.dumps(maker.broken(document) if break_it else document)
    shown = ""
    try:
        gateway = load(TextSource(text), environ={}).gateway
        shown = repr(gateway) + json.dumps(dump(gateway, Runtime(generation=1, workers=1)))
    except ConfigErrors as error:
        shown = str(error) + repr(error.errors)
    assert CANARY not in shown


def test_the_marker_does_reach_the_gateway() -> None:
    text = f"config: {{session: {{key: {CANARY}}}}}"
    key = load(TextSource(text), environ={}).gateway.process.session_key
    assert key is not None
    assert key.secret.reveal() == CANARY


def test_a_field_of_old_tells_what_took_its_place() -> None:
    assert lines("config: {listener: {}}") == [
        "config: unknown field 'listener': use 'frontendPolicies' (config.yaml:1)"
    ]
