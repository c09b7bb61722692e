"""The table of what guards see, and the words that are made of it. That it is true: tests/end_to_end/test_guard_coverage.py."""

from __future__ import annotations

from typing import get_args

from tests.oracles.guard_rig import parsed

from headgate.backend.llm.guards.coverage import KINDS, PLACES, kind_of, rows, sights, summary, table, unseen
from headgate.dialect.llm.transcript.contract import TextScope
from headgate.dialect.llm.transcript.table import FORMATS, GUARDED
from headgate.ir.policy.prompt_guard import GuardKind, PromptGuard, RegexGuard

ALL = """
{action}: [
  {regex: {action: reject, builtins: [ssn]}, scope: [messages, toolInput]},
  {regex: {builtins: [ssn]}},
  {webhook: {target: {host: "127.0.0.1:1"}}},
  {bedrockGuardrails: {identifier: g, version: "1", region: eu-west-1, policies: {backendAuth: {key: k}}}},
  {googleModelArmor: {templateId: t, projectId: p, policies: {backendAuth: {key: k}}}},
  {azureContentSafety: {endpoint: a.example, policies: {backendAuth: {key: k}}}}
]
"""
MODERATION = "request: [{openAIModeration: {policies: {backendAuth: {key: k}}}}]"


def guards(text: str) -> PromptGuard:
    found, faults = parsed(text)
    assert faults == []
    assert found is not None
    return found


def seen(text: str, side: str = "request", number: int = 0) -> dict[tuple[str, str], tuple[str, str]]:
    found = guards(text)
    entry = (found.request if side == "request" else found.response)[number]
    told = sights(found, entry, "request" if side == "request" else "response")
    return {(one.place.shape, one.place.name): (one.seen, one.why) for one in told if "completions" in one.formats or "realtime" in one.formats}


def test_the_table_has_every_kind_and_every_scope() -> None:
    both = guards(ALL.replace("{action}", "request")), guards(MODERATION)
    assert {kind_of(entry.guard) for found in both for entry in found.request} == set(KINDS)
    kinds = {type(entry.guard) for found in both for entry in found.request}
    assert kinds == set(get_args(GuardKind))
    assert {place.scope for place in PLACES} - {None} == set(TextScope)
    guarded = {form for place in PLACES if place.shape == "plain" for form in place.formats}
    assert guarded == GUARDED
    assert {form for place in PLACES for form in place.formats} == set(FORMATS)


def test_a_scope_opens_what_it_names() -> None:
    found = seen("request: [{regex: {action: reject, builtins: [ssn]}, scope: [messages, toolInput]}]")
    assert found["plain", "messages"] == found["tools", "earlier tool calls"] == ("yes", "")
    assert found["tools", "results of tools"] == ("no", "`scope` is without toolOutput")
    assert found["plain", "system prompt"] == ("no", "`scope` is without systemPrompt")
    assert found["reasoning", "earlier reasoning"][0] == "no"
    hook = seen('request: [{webhook: {target: {host: "127.0.0.1:1"}}}]')
    assert hook["tools", "results of tools"] == ("yes", ""), "messages of the role tool are messages"
    assert hook["tools", "earlier tool calls"] == ("no", "webhooks get messages, not tools")
    assert seen(MODERATION)["tools", "results of tools"] == ("no", "this guard reads no tools")


def test_streams_are_seen_as_they_are_set() -> None:
    text = ALL.replace("{action}", "response").replace(", scope: [messages, toolInput]", "")
    answers = {}
    for more in ("", "streaming: Enabled", "streaming: {masks: Apply}"):
        answers[more] = [seen(f"{text}\n{more}", "response", number)["stream", "the answer"][0] for number in range(6)]
    assert answers == {
        "": ["no"] * 6,
        "streaming: Enabled": ["yes", "no", "refusals", "refusals", "yes", "yes"],
        "streaming: {masks: Apply}": ["yes", "yes", "refusals", "refusals", "yes", "yes"],
    }
    hook = 'request: [{webhook: {target: {host: "127.0.0.1:1"}}}]\n'
    assert seen(hook + "streaming: Enabled")["realtime", "messages"][0] == "refusals"
    assert seen(hook + "streaming: {masks: Apply}")["realtime", "messages"][0] == "yes"


def test_rows_and_summary_say_the_same() -> None:
    found = guards(ALL.replace("{action}", "request"))
    assert isinstance(found.request[0].guard, RegexGuard)
    first = [row for row in rows(found) if row["number"] == 1]
    [*_, told] = [row for row in first if row["text"] == "earlier reasoning"]
    assert told == {
        "side": "request", "number": 1, "guard": "regex: reject", "shape": "reasoning", "text": "earlier reasoning",
        "formats": ["completions", "messages", "responses", "gemini", "converse"], "seen": "no",
        "why": "reasoning is not read",
    }  # fmt: skip
    short = summary(found)["request"][0]
    assert short["sees"] == [
        "messages", "variables of a stored prompt", "earlier tool calls (tools)", "documents as text (files)",
        "text files in base64 (files)",
    ]  # fmt: skip
    assert "refusesOnly" not in short
    assert sum(len(value) for value in short.values() if isinstance(value, dict | list)) == len(first)


def test_a_warning_names_what_no_guard_sees() -> None:
    found = guards("request: [{regex: {builtins: [ssn]}}, {regex: {builtins: [ssn]}, scope: [toolInput]}]")
    told = unseen(found, False)
    assert told.startswith("guards do not check of requests: results of tools (tools), definitions of tools (tools), ")
    assert "earlier tool calls (tools)" not in told
    assert "; responses at all: there is no guard for them" in told
    assert unseen(found, True).startswith("guards do not check paths of no known format; of requests: ")


def test_the_table_of_the_documents_has_a_row_for_each_place() -> None:
    assert len(table().splitlines()) == len(PLACES) + 2
