"""Histories for vendors that speak the client's format: what goes, what stays."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from headgate.dialect.llm import history, idents

THOUGHT = {"type": "thinking", "thinking": "Hm", "signature": "c2ln"}
UNSIGNED = {"type": "thinking", "thinking": "Hm", "signature": ""}
CALL = {"type": "tool_use", "id": "call_1__thought__c2ln+/=", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "call_1__thought__c2ln+/=", "content": "r"}
USER: dict[str, Any] = {"role": "user", "content": "hi"}


def turn(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def test_unsigned_thoughts_go_and_signed_ones_stay() -> None:
    body = {"messages": [USER, turn("assistant", THOUGHT, UNSIGNED, {"type": "thinking"}), turn("assistant", UNSIGNED)]}
    before = copy.deepcopy(body)
    assert history.messages(body, "anthropic")["messages"] == [USER, turn("assistant", THOUGHT)]
    assert body == before


def test_calls_and_results_get_the_same_id() -> None:
    made = history.messages({"messages": [USER, turn("assistant", CALL), turn("user", RESULT)]}, "anthropic")
    assert made["messages"][1]["content"][0]["id"] == "call_1"
    assert made["messages"][2]["content"][0]["tool_use_id"] == "call_1"


@pytest.mark.parametrize(
    ("said", "kind"),
    [([CALL], "disabled"), ([UNSIGNED, CALL], "disabled"), ([THOUGHT, CALL], "enabled")],
)
def test_a_budget_goes_where_the_thought_before_the_calls_is_missing(said: list[Any], kind: str) -> None:
    thinking = {"type": "enabled", "budget_tokens": 2000}
    body = {"messages": [USER, turn("assistant", *said), turn("user", RESULT)], "thinking": thinking}
    assert history.messages(body, "anthropic")["thinking"]["type"] == kind
    body["messages"].append(turn("assistant", {"type": "text", "text": "Done"}))
    assert history.messages(body, "anthropic")["thinking"] == thinking


@pytest.mark.parametrize("vendor", ["openai", "azure", "groq", "deepseek", "custom"])
def test_reasoning_goes_to_vendors_that_know_it(vendor: str) -> None:
    said = {"role": "assistant", "content": "x", "reasoning_content": "Hm", "reasoning_signature": "s"}
    made = history.completions({"messages": [USER, said]}, vendor)["messages"][1]
    strict = vendor in ("openai", "azure", "groq")
    assert made == ({"role": "assistant", "content": "x"} if strict else said)


def test_ids_of_chat_completions() -> None:
    call = {"id": "call_1__thought__c2ln", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "call_1__thought__c2ln", "content": "r"}
    body = {"messages": [USER, {"role": "assistant", "tool_calls": [call]}, result]}
    made = history.completions(body, "openai")["messages"]
    assert (made[1]["tool_calls"][0]["id"], made[2]["tool_call_id"]) == ("call_1", "call_1")
    made = history.completions(body, "mistral")["messages"]
    assert made[1]["tool_calls"][0]["id"] == made[2]["tool_call_id"]
    assert len(made[2]["tool_call_id"]) == 9


def test_reasoning_items_that_the_gateway_made_go() -> None:
    made = {"type": "reasoning", "id": f"rs_{'0' * 24}_0", "summary": []}
    own = {"type": "reasoning", "id": f"rs_{'0' * 48}", "summary": [], "encrypted_content": "e"}
    call = {"type": "function_call", "call_id": "c" * 65, "name": "f", "arguments": "{}"}
    found = history.responses({"input": [made, own, call]}, "openai")["input"]
    assert found[0] is own
    assert len(found[1]["call_id"]) == 64
    assert history.responses({"input": "hi"}, "openai") == {"input": "hi"}


def test_turns_of_others_at_bedrock() -> None:
    unsigned = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
    own = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}
    sealed = {"reasoningContent": {"redactedContent": idents.wrapped("x", redacted=True)}}
    call = {"toolUse": {"toolUseId": "c__thought__s", "name": "f", "input": {}}}
    result = {"toolResult": {"toolUseId": "c__thought__s", "content": []}}
    body = {"messages": [{"role": "user", "content": [{"text": "a"}]}, {"role": "assistant", "content": [unsigned]},
                         {"role": "assistant", "content": [own, sealed, call]}, {"role": "user", "content": [result]}],
            "additionalModelRequestFields": {"thinking": {"type": "enabled"}, "top_k": 3}}  # fmt: skip
    made = history.converse(body, "aws.bedrock", claude=True)
    assert [turn["role"] for turn in made["messages"]] == ["user", "assistant", "user"]
    assert made["messages"][1]["content"] == [own, {"toolUse": {**call["toolUse"], "toolUseId": "c"}}]
    assert made["messages"][2]["content"][0]["toolResult"]["toolUseId"] == "c"
    assert made["additionalModelRequestFields"] == body["additionalModelRequestFields"]
    assert history.converse(body, "aws.bedrock", claude=False)["messages"][1]["content"] == [unsigned]
    # Behind calls that another vendor has made there is no thought to show.
    body["messages"][2]["content"] = [call]
    assert history.converse(body, "aws.bedrock", claude=True)["additionalModelRequestFields"] == {"top_k": 3}


@pytest.mark.parametrize(
    "odd", [None, 3, "x", [], [None, 3, "x", {}], {"a": 1}, [{"role": "assistant", "content": [3, None]}]]
)
def test_odd_members_are_left_to_the_vendor(odd: Any) -> None:
    for name, clean in history.CLEAN.items():
        member = "input" if name == "responses" else "messages"
        made = clean({member: odd, "model": "m", "thinking": odd}, "openai")
        assert made[member] == odd
        assert made["model"] == "m"
