from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.dialect.llm.enrichment import EnrichmentMessage, enrich

RULES = EnrichmentMessage("system", 'Be "kind"')
FIRST = EnrichmentMessage("user", "first")
LAST = EnrichmentMessage("assistant", "last")
END = EnrichmentMessage("system", "end")


def told(body: Any, form: str, prepend: list[EnrichmentMessage], append: list[EnrichmentMessage]) -> Any:
    return json.loads(enrich(json.dumps(body).encode(), form, prepend, append))


def test_messages_of_a_chat_stand_around_the_clients() -> None:
    body = {"messages": [{"role": "user", "content": "hi"}]}
    found = told(body, "completions", [RULES, FIRST], [LAST])
    assert [(one["role"], one["content"]) for one in found["messages"]] == [
        ("system", 'Be "kind"'), ("user", "first"), ("user", "hi"), ("assistant", "last"),
    ]  # fmt: skip


def test_the_clients_bytes_stay() -> None:
    own = b'{"role" : "user", "content":"\\u00e9", "x":1.0}'
    body = b' { "a":1e3 , "messages" : [ ' + own + b' ] , "b":null }'
    found = enrich(body, "completions", [FIRST], [])
    assert found == body.replace(own, own, 1).replace(b"[ ", b'[{"role":"user","content":"first"}, ', 1)
    assert enrich(body, "completions", [], []) == body


@pytest.mark.parametrize("form", ["completions", "messages", "responses", "gemini"])
def test_an_empty_conversation_takes_them_too(form: str) -> None:
    name = {"responses": "input", "gemini": "contents"}.get(form, "messages")
    assert len(told({name: []}, form, [FIRST], [LAST])[name]) == 2
    assert len(told({name: []}, form, [FIRST], [])[name]) == 1
    assert len(told({name: []}, form, [], [LAST])[name]) == 1


@pytest.mark.parametrize(
    ("system", "texts"),
    [
        (None, ['Be "kind"', "end"]),
        ("own", ['Be "kind"', "own", "end"]),
        ("", ['Be "kind"', "end"]),
        ([{"type": "text", "text": "own", "cache_control": {"type": "ephemeral"}}], ['Be "kind"', "own", "end"]),
    ],
)
def test_system_texts_of_messages_go_into_their_field(system: Any, texts: list[str]) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}]} | ({} if system is None else {"system": system})
    found = told(body, "messages", [RULES, FIRST], [END])
    assert [block["text"] for block in found["system"]] == texts
    assert [one["content"] for one in found["messages"]] == ["first", "hi"]
    if isinstance(system, list):
        assert found["system"][1] == system[0]


@pytest.mark.parametrize(
    ("instruction", "texts"),
    [
        ({}, ['Be "kind"', "end"]),
        ({"systemInstruction": {"parts": [{"text": "own"}]}}, ['Be "kind"', "own", "end"]),
        ({"system_instruction": {"parts": {"text": "own"}}}, ['Be "kind"', "own", "end"]),
        ({"systemInstruction": {"role": "system"}}, ['Be "kind"', "end"]),
        ({"systemInstruction": None}, ['Be "kind"', "end"]),
    ],
)
def test_system_texts_of_gemini_go_into_their_field(instruction: Any, texts: list[str]) -> None:
    found = told({"contents": {"parts": [{"text": "hi"}]}} | instruction, "gemini", [RULES], [END, LAST])
    name = next(name for name in ("system_instruction", "systemInstruction") if name in found)
    assert [one["text"] for one in found[name]["parts"]] == texts
    assert found["contents"] == [{"parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "last"}]}]


def test_a_string_input_becomes_a_list() -> None:
    found = told({"instructions": "own", "input": "hi"}, "responses", [RULES], [LAST])
    assert [(one["role"], one["content"]) for one in found["input"]] == [
        ("system", 'Be "kind"'), ("user", "hi"), ("assistant", "last"),
    ]  # fmt: skip
    assert found["instructions"] == "own"


@pytest.mark.parametrize("given", [{}, {"input": None}])
def test_a_prompt_that_the_provider_keeps_gets_them_as_its_input(given: dict[str, Any]) -> None:
    found = told({"prompt": {"id": "p"}, **given}, "responses", [RULES], [LAST])
    assert [one["content"] for one in found["input"]] == ['Be "kind"', "last"]
    assert found["prompt"] == {"id": "p"}


@pytest.mark.parametrize("form", ["embeddings", "rerank", "detect", "passthrough", "gemini_count_tokens"])
def test_formats_without_messages_are_left_alone(form: str) -> None:
    body = {"input": "x", "messages": [], "contents": []}
    assert told(body, form, [FIRST], [LAST]) == body
