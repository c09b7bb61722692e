"""What requests become that no golden file shows: models that make a difference, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.dialect.llm import pairs
from headgate.dialect.llm.contract import Options, Untranslatable, UpstreamGarbage

FUNCTION = {"type": "function", "function": {"name": "f"}}
TURNS = [{"role": "user", "content": "go"}]


def calls(*idents: str) -> dict[str, Any]:
    made = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in idents]
    return {"role": "assistant", "tool_calls": made}


@pytest.mark.parametrize(
    ("model", "signatures"),
    [
        ("gemini-3-pro", ["skip_thought_signature_validator", None]),
        ("google/gemini-3.1-flash", ["skip_thought_signature_validator", None]),
        ("gemini-2.5-pro", [None, None]),
    ],
)
def test_calls_that_another_model_made_say_so_to_models_that_want_signatures(model: str, signatures: Any) -> None:
    pair = pairs.converter("completions", "gemini")
    assert pair is not None
    sent = pair.request({"messages": [*TURNS, calls("a", "b")]}, Options(model=model)).body
    assert [part.get("thoughtSignature") for part in sent["contents"][1]["parts"]] == signatures
    own = pair.request({"messages": [*TURNS, calls("a__thought__c2ln", "b")]}, Options(model=model)).body
    assert [part.get("thoughtSignature") for part in own["contents"][1]["parts"]] == ["c2ln", None]


@pytest.mark.parametrize("upstream", ["messages", "gemini", "converse"])
@pytest.mark.parametrize(
    ("choice", "where"),
    [
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"tool_choice": {"type": "hosted", "hosted": {"name": "f"}}}, "tool_choice.type"),
        ({"tool_choice": {"type": "custom", "custom": {}}}, "tool_choice.custom.name"),
        ({"tool_choice": {"type": "function", "function": {}}}, "tool_choice.function.name"),
        ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "none"}}},
         "tool_choice.allowed_tools.mode"),
        ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": [FUNCTION]}}}, None),
        ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": []}}}, "tool_choice"),
        ({"function_call": "sometimes"}, "function_call"),
        ({"function_call": {}}, "function_call.name"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
    ],
)
def test_choices_of_tools_that_cannot_be_carried(upstream: str, choice: dict[str, Any], where: str | None) -> None:
    pair = pairs.converter("completions", upstream)
    assert pair is not None
    body = {"messages": TURNS, "tools": [FUNCTION], **choice}
    if where is None:
        pair.request(body, Options(model="m"))
        return
    with pytest.raises(Untranslatable) as refused:
        pair.request(body, Options(model="m"))
    assert refused.value.field == where


@pytest.mark.parametrize(("given", "kind"), [("none", "none"), ("auto", "auto"), ({"name": "f"}, "tool")])
def test_the_choice_of_older_clients(given: Any, kind: str) -> None:
    pair = pairs.converter("completions", "messages")
    assert pair is not None
    sent = pair.request({"messages": TURNS, "functions": [{"name": "f"}], "function_call": given}, Options(model="m")).body
    assert sent["tool_choice"]["type"] == kind


@pytest.mark.parametrize("upstream", ["messages", "gemini", "converse"])
@pytest.mark.parametrize("text", ["not json", "[1]", "3", '"x"', "{", '{"a": 1} {}'])
def test_arguments_that_are_no_object_become_one_that_keeps_the_text(upstream: str, text: str) -> None:
    """Vendors refuse an input of another type: https://docs.anthropic.com/en/api/messages (`input` is an object)."""
    pair = pairs.converter("completions", upstream)
    assert pair is not None
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": text}}
    turns = [*TURNS, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "a", "content": "r"}]
    sent = pair.request({"messages": turns, "max_tokens": 9}, Options(model="m")).body
    found = {
        "messages": lambda: sent["messages"][1]["content"][0]["input"],
        "gemini": lambda: sent["contents"][1]["parts"][0]["functionCall"]["args"],
        "converse": lambda: sent["messages"][1]["content"][0]["toolUse"]["input"],
    }[upstream]()
    assert found == {"input": text}


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("upstream", ["bedrock_rerank", "vertex_rerank"])
def test_a_result_without_a_document_is_no_answer(upstream: str, keep: bool) -> None:
    pair = pairs.converter("rerank", upstream)
    assert pair is not None
    asked = pair.request({"query": "q", "documents": ["a", "b"], "return_documents": keep}, Options(model="m"))
    for index, good in ((0, True), (1, True), (2, False), (7, False)):
        reply = {
            "results": [{"index": index, "relevanceScore": 0.5}], "records": [{"id": str(index), "score": 0.5}],
        }  # fmt: skip
        if good:
            assert pair.reply(reply, asked)["results"][0]["index"] == index
        else:
            with pytest.raises(UpstreamGarbage):
                pair.reply(reply, asked)


SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
KEPT = {"type": "file", "file": {"file_id": "file-1"}}
SHEET = {"type": "file", "file": {"filename": "a.xlsx", "file_data": "data:application/vnd.ms-excel;base64,AAAA"}}


@pytest.mark.parametrize("part", [SOUND, KEPT, SHEET], ids=["sound", "kept", "sheet"])
def test_a_question_of_which_nothing_is_left_is_refused(part: dict[str, Any]) -> None:
    pair = pairs.converter("completions", "messages")
    assert pair is not None
    asked = {"messages": [*TURNS, {"role": "assistant", "content": "a"}, {"role": "user", "content": [part]}]}
    with pytest.raises(Untranslatable, match=r"messages\[2\]\.content"):
        pair.request(asked, Options(model="claude-x"))
    # In earlier turns it is only told: the conversation may have begun at another vendor.
    told = pair.request({"messages": [*asked["messages"], *TURNS]}, Options(model="claude-x"))
    assert told.dropped == ("messages[2].content[0]",)
    asked["messages"][2]["content"] = [part, {"type": "text", "text": "and"}]
    assert pair.request(asked, Options(model="claude-x")).dropped == ("messages[2].content[0]",)


@pytest.mark.parametrize("upstream", ["messages", "converse"])
@pytest.mark.parametrize("turns", [[{"role": "system", "content": "be brief"}], [{"role": "user", "content": " "}]])
def test_a_conversation_without_a_word_is_refused(upstream: str, turns: list[dict[str, Any]]) -> None:
    pair = pairs.converter("completions", upstream)
    assert pair is not None
    with pytest.raises(Untranslatable, match="messages"):
        pair.request({"messages": turns}, Options(model="claude-x"))
