"""What each format says, where, and to whom."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.dialect.llm.transcript.contract import DEFAULT_SCOPES, TextScope, Transcript
from headgate.dialect.llm.transcript.table import FORMATS, GUARDED, reply_texts, request_texts

SYSTEM, SAID, GIVEN, GOT = TextScope.SYSTEM_PROMPT, TextScope.MESSAGES, TextScope.TOOL_INPUT, TextScope.TOOL_OUTPUT


def runs_of(found: Transcript) -> list[tuple[TextScope, str]]:
    return [(run.scope, run.text(found.body).decode()) for run in found.runs]


def turns_of(found: Transcript) -> list[tuple[str, str]]:
    return [(turn.role, turn.text(found.body).decode()) for turn in found.turns]


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


IMAGE = {"type": "image_url", "image_url": {"url": "data:,x"}}
REQUESTS: dict[str, tuple[str, Any, list[tuple[TextScope, str]], list[tuple[str, str]]]] = {
    "completions": (
        "completions",
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief"},
                {"role": "developer", "content": [text("a"), text("b")]},
                {"role": "user", "name": "jo", "content": [text("Say"), text("hi"), IMAGE, text("now")]},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"to":"x"}'}},
                        {"id": "2", "type": "custom", "custom": {"name": "g", "input": "raw"}},
                    ],
                },
                {"role": "tool", "tool_call_id": "1", "content": "done"},
                {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
                {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}], "refusal": "never"},
            ],
        },
        [
            (SYSTEM, "Be brief"), (SYSTEM, "a b"), (SAID, "Say hi"), (SAID, "now"), (GIVEN, '{"to":"x"}'), (GIVEN, "raw"),
            (GOT, "done"), (GIVEN, "{}"), (SAID, "no"), (SAID, "never"),
        ],
        [
            ("system", "Be brief"), ("developer", "a b"), ("user", "Say hi now"), ("assistant", ""), ("tool", "done"),
            ("assistant", ""), ("assistant", "no never"),
        ],
    ),
    "messages": (
        "messages",
        {
            "system": [text("one"), {**text("two"), "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": "Hi"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hidden", "signature": "s"},
                        text("let me"),
                        {"type": "tool_use", "id": "t", "name": "f", "input": {"to": "x"}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "t", "content": [text("r1"), text("r2")]},
                        {"type": "tool_result", "tool_use_id": "u", "content": "plain"},
                        {"type": "web_search_tool_result", "content": [{"title": "unseen"}]},
                        {"type": "document", "title": "T", "source": {"type": "text", "data": "D"}, "context": "C"},
                        {"type": "document", "source": {"type": "base64", "data": "QUJD"}},
                        {"type": "search_result", "source": "S", "title": "U", "content": [text("V")]},
                        {"type": "image", "source": {"type": "base64", "data": "QUJD"}},
                        text("ok"),
                    ],
                },
            ],
        },
        [
            (SYSTEM, "one\ntwo"), (SAID, "Hi"), (SAID, "let me"), (GIVEN, '{"to": "x"}'), (GOT, "r1 r2"), (GOT, "plain"),
            (SAID, "T"), (SAID, "C"), (SAID, "D"), (SAID, "U"), (SAID, "V"), (SAID, "S"), (SAID, "ok"),
        ],
        [("system", "one\ntwo"), ("user", "Hi"), ("assistant", "let me"), ("user", "T C D U V S ok")],
    ),
    "responses": (
        "responses",
        {
            "instructions": "Be brief",
            "input": [
                {"role": "user", "content": "plain"},
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
                },
                {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"},
                {"type": "function_call_output", "call_id": "c", "output": "out"},
                {"type": "local_shell_call", "action": {"command": ["ls"]}},
                {"type": "mcp_call", "arguments": "{1}", "output": "mcp"},
                {"type": "reasoning", "summary": [text("hidden")]},
                {"role": "developer", "content": "dev"},
                {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            ],
            "prompt": {"id": "p", "variables": {"a": "var", "b": {"type": "input_text", "text": "part"}}},
        },
        [
            (SYSTEM, "Be brief"), (SAID, "plain"), (SAID, "a\nb"), (GIVEN, "{}"), (GOT, "out"),
            (GIVEN, '{"command": ["ls"]}'), (GIVEN, "{1}"), (GOT, "mcp"), (SYSTEM, "dev"), (SAID, "no"),
            (SAID, "var"), (SAID, "part"),
        ],
        [
            ("system", "Be brief"), ("user", "plain"), ("user", "a\nb"), ("developer", "dev"), ("assistant", "no"),
            ("user", "var\npart"),
        ],
    ),
    "responses instructions": (
        "responses",
        {"instructions": [{"role": "developer", "content": "dev"}], "input": "hello"},
        [(SYSTEM, "dev"), (SAID, "hello")],
        [("developer", "dev"), ("user", "hello")],
    ),
    "responses string": ("responses", {"input": "hello"}, [(SAID, "hello")], [("user", "hello")]),
    "gemini": (
        "gemini",
        {
            "system_instruction": {"parts": [{"text": "Be"}, {"text": "brief"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Hi"}, {"inlineData": {"data": "QUJD"}}]},
                {"role": "model", "parts": [{"text": "hm", "thought": True}, {"functionCall": {"name": "f", "args": {"a": 1}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"b": 2}}}, {"text": "so"}]},
                {"role": "model", "parts": [{"executableCode": {"code": "1+1"}}, {"codeExecutionResult": {"output": "2"}}]},
            ],
        },
        [
            (SYSTEM, "Be\nbrief"), (SAID, "Hi"), (GIVEN, '{"a": 1}'), (GOT, '{"b": 2}'), (SAID, "so"), (GIVEN, "1+1"),
            (GOT, "2"),
        ],
        [("system", "Be\nbrief"), ("user", "Hi"), ("model", ""), ("user", "so"), ("model", "")],
    ),
    "converse": (
        "converse",
        {
            "system": [{"text": "Be"}, {"cachePoint": {"type": "default"}}, {"text": "brief"},
                       {"guardContent": {"text": {"text": "Be kind"}}}],
            "messages": [
                {"role": "user", "content": [{"text": "Hi"}, {"text": "you"}, {"image": {"source": {"bytes": "QUJD"}}},
                    {"document": {"name": "n", "source": {"text": "doc"}, "context": "mine"}},
                    {"document": {"source": {"content": [{"text": "one"}, {"text": "two"}]}}},
                    {"searchResult": {"source": "https://a.example", "title": "A", "content": [{"text": "found"}]}}]},
                {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "hm"}}},
                    {"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": 1}}},
                    {"citationsContent": {"content": [{"text": "cited"}], "citations": []}}]},
                {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [
                    {"text": "blue"}, {"json": {"b": 2}}, {"document": {"source": {"text": "paper"}}}]}}, {"text": "so"}]},
            ],
            "promptVariables": {"a": {"text": "given"}},
        },
        [
            (SYSTEM, "Be"), (SYSTEM, "brief"), (SYSTEM, "Be kind"), (SAID, "Hi you"), (SAID, "mine"), (SAID, "doc"),
            (SAID, "one"), (SAID, "two"), (SAID, "A"), (SAID, "found"), (GIVEN, '{"a": 1}'), (SAID, "cited"), (GOT, "blue"),
            (GOT, '{"b": 2}'), (GOT, "paper"), (SAID, "so"), (SAID, "given"),
        ],
        [
            ("system", "Be\nbrief\nBe kind"), ("user", "Hi you mine doc one two A found"), ("assistant", "cited"), ("user", "so"),
            ("user", "given"),
        ],
    ),
    "count_tokens": (
        "count_tokens",
        {"system": "s", "messages": [{"role": "user", "content": "u"}]},
        [(SYSTEM, "s"), (SAID, "u")],
        [("system", "s"), ("user", "u")],
    ),
    "embeddings": ("embeddings", {"input": ["a", "b"]}, [(SAID, "a"), (SAID, "b")], []),
    "embeddings tokens": ("embeddings", {"input": [1, 2]}, [], []),
    "rerank": ("rerank", {"query": "q", "documents": ["a", {"text": "b"}]}, [(SAID, "q"), (SAID, "a"), (SAID, "b")], []),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("lead", [b"", b" \n"])
def test_texts_of_requests(name: str, lead: bytes) -> None:
    form, body, runs, turns = REQUESTS[name]
    found = request_texts(lead + json.dumps(body).encode(), form)
    assert runs_of(found) == runs
    assert turns_of(found) == turns
    assert found.of(DEFAULT_SCOPES) == [run for run in found.runs if run.scope in (SYSTEM, SAID)]


REPLIES: dict[str, tuple[Any, list[str], list[str]]] = {
    "completions": (
        {"choices": [{"message": {"role": "assistant", "content": "A", "tool_calls": []}}, {"message": {"content": "B"}}]},
        ["A", "B"],
        ["A", "B"],
    ),
    "messages": (
        {"content": [{"type": "thinking", "thinking": "t"}, text("A"), text("B"), {"type": "tool_use", "input": {}}]},
        ["A B"],
        ["A B"],
    ),
    "responses": (
        {
            "output": [
                {"type": "reasoning", "summary": []},
                {"type": "message", "content": [{"type": "output_text", "text": "A", "annotations": []}]},
                {"type": "function_call", "arguments": "{}"},
            ]
        },
        ["A"],
        ["A"],
    ),
    "gemini": (
        {"candidates": [{"content": {"parts": [{"text": "t", "thought": True}, {"text": "A"}]}}, {"content": {}}]},
        ["A"],
        ["A", ""],
    ),
    "converse": (
        {"output": {"message": {"role": "assistant", "content": [
            {"reasoningContent": {"reasoningText": {"text": "t"}}}, {"text": "A"}, {"text": "B"},
            {"toolUse": {"toolUseId": "t", "name": "f", "input": {}}},
            {"citationsContent": {"content": [{"text": "C"}], "citations": []}}]}}},
        ["A B", "C"],
        ["A B C"],
    ),
    "embeddings": ({"data": [{"embedding": [1]}]}, [], []),
}


@pytest.mark.parametrize("form", REPLIES)
def test_texts_of_replies(form: str) -> None:
    body, runs, turns = REPLIES[form]
    found = reply_texts(json.dumps(body).encode(), form)
    assert [said for _, said in runs_of(found)] == runs
    assert turns_of(found) == [("assistant", said) for said in turns]


def test_members_that_stand_twice_all_count() -> None:
    body = b'{"messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b","content":"c"}]}'
    assert [said for _, said in runs_of(request_texts(body, "completions"))] == ["a", "b c"]


def test_a_message_with_two_roles_is_looked_at_as_the_one_that_guards_see() -> None:
    body = b'{"messages":[{"role":"tool","role":"user","content":"a"},{"role":"user","role":"tool","content":"b"}]}'
    assert {scope for scope, _ in runs_of(request_texts(body, "completions"))} == {SAID}


def test_which_formats_are_guarded() -> None:
    assert {"completions", "messages", "responses", "gemini", "converse"} == GUARDED
    assert set(FORMATS) > GUARDED


@pytest.mark.parametrize("body", [b"", b"[]", b'{"messages":', b"nope"])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        request_texts(body, "completions")


ODD = [None, 1, "x", [], {}, [[]], [None], [1], [{}], [{"content": 3}], [{"content": [None, 1, "t", {"text": 4}]}]]


@pytest.mark.parametrize("form", sorted(FORMATS))
@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_odd_values_are_read_without_harm(form: str, odd: object) -> None:
    names = ("messages", "system", "input", "instructions", "contents", "systemInstruction", "choices", "content", "output")
    body = json.dumps({name: odd for name in (*names, "candidates", "query", "documents")}).encode()
    for found in (request_texts(body, form), reply_texts(body, form)):
        for run in found.runs:
            run.text(body)
        for turn in found.turns:
            turn.text(body)
