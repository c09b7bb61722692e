"""Patterns of prompt guards are compiled before the routes that have them, in a thread, and each list of rules once."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.backend.llm.guards import regex
from headgate.config.load import TextSource, load
from headgate.pipeline.guard_patterns import compile_patterns, models_of
from headgate.server.dry_run import dry_run
from headgate_engine.guard.scan import Scanner

RULES = "{promptGuard: {request: [{regex: {rules: [{pattern: 'secret-[0-9]+'}, {pattern: 'key-[0-9]+'}]}}]}}"
ROUTE = """gateways: {default: {port: 1}}
routes:
- name: a
  backends: [{ai: {name: m, provider: {openAI: {}}}, policies: {ai: %s}}]
- name: b
  backends: [{ai: {name: n, provider: {openAI: {}}}, policies: {ai: %s}}]
- name: c
  backends: [{host: 'h:1'}]
"""


def loaded(text: str) -> Any:
    return load(TextSource(text), environ={}).gateway


def test_a_list_of_rules_is_compiled_once_and_before_its_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def scanner(rules: Any) -> Scanner:
        made.append((rules, threading.current_thread()))
        return Scanner(rules)

    monkeypatch.setattr(regex, "Scanner", scanner)
    gateway = loaded(ROUTE % (RULES, RULES))
    assert dry_run(gateway) == []
    assert [rules for rules, _ in made] == [[("pattern", "secret-[0-9]+"), ("pattern", "key-[0-9]+")]]
    [listener] = gateway.binds[0].listeners
    env: Any = SimpleNamespace(scanners={})
    found = [list(compile_patterns(route, env)) for route in listener.routes]
    assert [len(one) for one in found] == [1, 1, 0]
    found[0][0]()
    assert len(env.scanners) == 1
    assert not any(list(compile_patterns(route, env)) for route in listener.routes)


def test_builtins_need_no_thread() -> None:
    rules = "{promptGuard: {request: [{regex: {builtins: [Email]}}]}}"
    [listener] = loaded(ROUTE % (rules, rules)).binds[0].listeners
    env: Any = SimpleNamespace(scanners={})
    assert [list(compile_patterns(route, env)) for route in listener.routes] == [[], [], []]


def test_all_models_of_a_router_are_looked_at() -> None:
    one, two, three, four = (SimpleNamespace() for _ in range(4))
    target: Any = SimpleNamespace(model=three, others=(four,))
    router: Any = SimpleNamespace(
        models=(one,), internal_models=(two,), resources=SimpleNamespace(providers=()),
        virtual_models=(SimpleNamespace(targets=(target,)),),
    )  # fmt: skip
    assert list(models_of(router)) == [one, two, three, four]
