"""Stored resources in the document of the file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.config.resources.merging import NO_POLICY, Merger
from headgate.config.resources.stored import StoredResource, StoredSnapshot
from headgate.document.nodes import Report, plain
from headgate.document.read import read
from headgate.errors import ConfigError, Problem


def snapshot(*resources: tuple[str, str, Any]) -> StoredSnapshot:
    return StoredSnapshot(1, tuple(
        StoredResource(kind=kind, id=name, text=json.dumps(value), revision=1, place=place, created_us=0, updated_us=0)
        for place, (kind, name, value) in enumerate(resources, 1)
    ))  # fmt: skip


def merged(text: str, *resources: tuple[str, str, Any], environ: dict[str, str] | None = None) -> tuple[Any, Merger, list[ConfigError]]:
    root, report = read(text, "f"), Report("f")
    merger = Merger(root, snapshot(*resources), environ or {}, report)
    merger.merge()
    return plain(root), merger, [merger.told(error) for error in report.errors]


def test_items_follow_those_of_the_file_and_entries_and_fields_are_added() -> None:
    document, merger, errors = merged(
        "gateways: {a: {port: 1}}\nroutes: [{name: x}]\nllm: {models: [{name: m}], policies: {cors: {}}}\nmcp: {targets: [{name: t}]}",
        ("traffic.route", "y", {"name": "y"}), ("traffic.gateway", "b", {"name": "b", "port": 2}), ("llm.policy", "csrf", {"csrf": {"a": 1}}),
        ("llm.model", "n", {"name": "n"}), ("mcp.settings", "default", {"prefixMode": "never"}), ("traffic.route", "w", {"name": "w"}),
    )  # fmt: skip
    assert document == {
        "gateways": {"a": {"port": 1}, "b": {"port": 2}},
        "routes": [{"name": "x"}, {"name": "y"}, {"name": "w"}],
        "llm": {"models": [{"name": "m"}, {"name": "n"}], "policies": {"cors": {}, "csrf": {"a": 1}}},
        "mcp": {"targets": [{"name": "t"}], "prefixMode": "never"},
    }
    assert (merger.warnings, errors) == ([], [])


def test_a_section_is_made_by_a_model_or_a_target_and_others_wait_for_it() -> None:
    policy = ("llm.policy", "cors", {"cors": {}})
    document, merger, errors = merged("{}", policy)
    assert (document, errors) == ({}, [])
    assert merger.warnings == ["llm.policy/cors: no effect without a section llm in the file or llm.model"]
    document, merger, _ = merged("{}", policy, ("llm.model", "m", {"name": "m"}))
    assert document == {"llm": {"models": [{"name": "m"}], "policies": {"cors": {}}}}
    document, merger, _ = merged("{}", ("ui.policy", "cors", {"cors": {}}))
    assert (document, merger.warnings) == ({}, ["ui.policy/cors: no effect without a section ui in the file"])


def test_what_waits_is_checked_by_itself() -> None:
    errors = merged("{}", ("mcp.settings", "default", {"prefixMode": "x"}), ("llm.provider", "p", {"name": "p", "nonsense": 1}))[2]
    assert [(error.file, error.line) for error in errors] == [("resource llm.provider/p", 0), ("resource llm.provider/p", 0), ("resource mcp.settings/default", 0)]


def test_the_file_wins() -> None:
    document, merger, _ = merged(
        "gateways: {a: {port: 1}}\nmcp: {targets: [], port: 3}", ("traffic.gateway", "a", {"port": 2}), ("mcp.settings", "default", {"port": 4, "prefixMode": "never"})
    )
    assert document == {"gateways": {"a": {"port": 1}}, "mcp": {"targets": [], "port": 3}}
    assert merger.warnings == [
        "mcp.settings/default: left out, because the file also defines it", "traffic.gateway/a: left out, because the file also defines it",
    ]  # fmt: skip


def test_keys_need_their_policy() -> None:
    model, key = ("llm.model", "m", {"name": "m"}), ("llm.apiKey", "b", {"key": "k"})
    [error] = merged("{}", model, key)[2]
    assert (error.message, error.file) == (NO_POLICY, "resource llm.apiKey/b")
    document, _, errors = merged("{}", model, key, ("llm.policy", "apiKey", {"apiKey": {"keys": [{"key": "first"}]}}))
    assert (document["llm"]["policies"], errors) == ({"apiKey": {"keys": [{"key": "first"}, {"key": "k"}]}}, [])


def test_variables_are_replaced_and_told_where_they_are_missing() -> None:
    document, _, errors = merged("{}", ("traffic.route", "a", {"name": "$A", "x": ["${B}"]}), environ={"A": "set"})
    assert document == {"routes": [{"name": "set", "x": ["${B}"]}]}
    assert [(error.problem, error.file) for error in errors] == [(Problem.ENVIRONMENT, "resource traffic.route/a")]


@pytest.mark.parametrize(
    ("path", "line", "told", "file"),
    [
        ("routes[1].matches[0]", 0, "matches[0]", "resource traffic.route/y"),
        ("routes[1]", 0, "", "resource traffic.route/y"),
        ("routes.y must", -1, "routes.y must", "resource traffic.route/y"),
        ("llm.policies.csrf.a", 0, "csrf.a", "resource llm.policy/csrf"),
        ("routes[10].x", 3, "routes[10].x", "f"),
        ("routes[0]", 3, "routes[0]", "f"),
    ],
)
def test_faults_are_told_of_the_resource_that_they_are_in(path: str, line: int, told: str, file: str) -> None:
    _, merger, _ = merged("routes: [{name: x}]\nllm: {models: []}", ("traffic.route", "y", {"name": "y"}), ("llm.policy", "csrf", {"csrf": {}}))
    found = merger.told(ConfigError(Problem.VALUE, path, "m", "f", line, 1))
    assert (found.path, found.file) == (told, file)


def test_a_kind_of_a_newer_version_is_refused() -> None:
    [error] = merged("{}", ("llm.newer", "x", {}))[2]
    assert "resources of kind llm.newer" in str(error)
