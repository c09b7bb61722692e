"""What the guards of each route see, in words."""

from __future__ import annotations

from headgate.config.guard_coverage import guarded_routes, told
from headgate.config.load import TextSource, load

TEXT = """
gateways:
  default: {port: 4000}
llm:
  policies:
    guardrails: {request: [{regex: {builtins: [email]}}]}
  models:
  - {name: one, provider: openai, params: {apiKey: k}}
  - {name: two, provider: openai, params: {apiKey: k}}
routes:
- name: plain
  matches: [{path: {exact: /plain}}]
  backends: [{host: "127.0.0.1:1"}]
- name: own
  matches: [{path: {exact: /own}}]
  backends:
  - ai: {name: main, provider: {openAI: {}}}
    policies: {ai: {promptGuard: {response: [{regex: {builtins: [ssn]}}], streaming: true}, routes: {"*": passthrough}}}
- name: tools
  matches: [{path: {exact: /tools}}]
  backends:
  - mcp: {targets: [{name: a, mcp: {host: "http://127.0.0.1:2/mcp"}}]}
    policies: {mcpGuardrails: {processors: [{kind: remote, host: "127.0.0.1:3", methods: {"tools/call": full}}]}}
"""


def test_every_guarded_route_is_told_once_for_equal_guards() -> None:
    loaded = load(TextSource(TEXT), environ={})
    assert [(one.route, one.model) for one in guarded_routes(loaded.gateway)] == [
        ("default/own", "main"), ("default/tools", "a"), ("internal/llm:request", "one"), ("internal/llm:request", "two"),
    ]  # fmt: skip
    lines = list(told(loaded.gateway))
    heads = [line for line in lines if line.startswith("Guards of ")]
    assert len(heads) == 3
    assert sum("one at " in line and "two at " in line for line in heads) == 1
    assert "    no       stream    the answer (completions, messages, responses, gemini, converse): masks do not apply to streams " \
        "(`streaming.masks: Apply`)" in lines  # fmt: skip
    assert any(line.startswith("    yes      mcp       tools/call") for line in lines)


def test_the_loader_warns_once_for_equal_guards() -> None:
    first, second = (one for one in load(TextSource(TEXT), environ={}).warnings if "guards do not check" in one)
    assert {first.partition(": ")[0], second.partition(": ")[0]} == {"llm.models[0] and 1 more", "ai backend 'route/default/own/0'"}
    assert "paths of no known format" in (first if first.startswith("ai") else second)
