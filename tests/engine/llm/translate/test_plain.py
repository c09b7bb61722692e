"""Plain chats come to what the general translations make of them, byte for byte, and nothing else is taken for plain."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import effort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.dialect.llm import pairs
from headgate.dialect.llm.contract import Options, TranslatedRequest, Untranslatable, UpstreamGarbage
from headgate_engine.llm.translate.counts import completions_usage
from headgate_engine.llm.translate.plain import chat_request, chat_turns, message_reply

PAIR = pairs.PAIRS["messages", "completions"]
IDS = st.sampled_from(["toolu_1", "a b/c", "x" * 40, "x" * 41, "", "call__thought__s", 7, None])
TEXTS = st.sampled_from(["", "hi", "\u00e9\n\"", " ", None, 5])
TEXT = st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}, optional={"cache_control": st.just({"type": "ephemeral"})})
RESULT = st.fixed_dictionaries(
    {"type": st.just("tool_result"), "tool_use_id": IDS},
    optional={"content": TEXTS | st.lists(TEXT, max_size=2), "is_error": st.booleans(), "more": st.just(1)},
)
USE = st.fixed_dictionaries(
    {"type": st.just("tool_use"), "id": IDS, "name": st.sampled_from(["find", "", None]),
     "input": st.sampled_from([{}, {"q": [1, "\u00e9"]}, "text", None])},
    optional={"cache_control": st.just(None)},
)  # fmt: skip
OTHER = st.sampled_from([{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "image", "source": {"type": "url", "url": "u"}},
                         {"type": "image", "source": {}}, {}, {"type": "document", "source": {"type": "text", "data": "d"}}])  # fmt: skip
CONTENT = TEXTS | st.lists(st.one_of(TEXT, TEXT, RESULT, USE, OTHER), max_size=4)
TURN = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "user", "assistant", "system", "odd"]), "content": CONTENT}, optional={"name": st.just("n")}
)
REQUEST = st.fixed_dictionaries(
    {"messages": st.lists(TURN, max_size=4)},
    optional={
        "model": st.sampled_from(["m", "gpt-5.6", "", None]),
        "system": TEXTS | st.lists(TEXT, max_size=2),
        "max_tokens": st.sampled_from([9, 9.0, True, "9", None]),
        "stop_sequences": st.sampled_from([[], ["a"], "a", [1], None]),
        "metadata": st.sampled_from([{}, {"user_id": "u"}, {"user_id": 5}, {"user_id": None, "x": 1}, [], None]),
        "temperature": st.sampled_from([0, 0.5, "hot", None]),
        "top_p": st.sampled_from([1, None]),
        "stream": st.sampled_from([True, False, None, 1]),
        "top_k": st.just(3),
        "thinking": st.just({"type": "disabled"}),
        "tools": st.just([{"name": "find", "input_schema": {"type": "object"}}]),
    },
)
VENDORS = st.sampled_from(["openai", "mistral", "gcp.gemini"])


def outcome(translate: Any, body: Any, options: Options) -> tuple[Any, ...]:
    """What a translation makes of a request, as it is told apart by those who use it."""
    try:
        made: TranslatedRequest = translate(body, options)
    except Untranslatable as error:
        return ("refused", str(error))
    return json.dumps(made.body), made.stream, made.model, made.requested, made.dropped, made.names, made.echo, made.path_suffix


@settings(max_examples=effort.examples(600), deadline=None)
@given(body=REQUEST, vendor=VENDORS, model=st.sampled_from(["gpt-4o", "gpt-5.6", "gemini-3-pro", None]))
def test_requests_are_what_the_general_translation_makes(body: dict[str, Any], vendor: str, model: str | None) -> None:
    options = Options(model=model, vendor=vendor)
    before = json.dumps(body)
    assert outcome(PAIR.request, body, options) == outcome(PAIR.at_length, body, options)
    assert json.dumps(body) == before


@settings(max_examples=effort.examples(300), deadline=None)
@given(message=TURN)
def test_turns_are_what_a_request_with_a_further_member_makes(message: dict[str, Any]) -> None:
    """Also on the way to other formats, where ids keep everything."""
    turns = chat_turns(message, 40)
    whole = chat_turns(message, 0)
    body = {"model": "m", "messages": [message], "tools": [{"name": "f"}]}
    for made, options in ((turns, Options(vendor="openai")), (whole, Options(vendor="openai", whole_ids=True))):
        if made is not None:
            # The general way reads these turns block by block when the message has another member.
            longer = {**body, "messages": [{**message, "extra": 1}]}
            expected = PAIR.at_length(longer, options).body["messages"]
            assert json.dumps(made) == json.dumps(expected)


def test_usual_chats_are_plain() -> None:
    """The short way would be of no use if nothing went there."""
    turns: list[Any] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "I look"}, {"type": "tool_use", "id": "t1", "name": "find", "input": {"q": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "found"}]},
                                     {"type": "text", "text": "and?"}]},
    ]  # fmt: skip
    body = {"model": "m", "max_tokens": 5, "system": "be brief", "metadata": {"user_id": "u"}, "stream": True, "messages": turns}
    made = chat_request(body, "gpt-4o", 40)
    assert made is not None
    assert made[1] is True
    assert [turn["role"] for turn in made[0]["messages"]] == ["system", "user", "assistant", "tool", "user"]
    assert chat_request({**body, "thinking": {}}, "gpt-4o", 40) is None
    assert chat_request(body, "gpt-4o", -1) is None
    assert chat_request(body, "", 40) is None
    reply = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "service_tier": "default", "system_fingerprint": "f",
             "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi", "refusal": None, "annotations": []},
                          "logprobs": None, "finish_reason": "stop"}]}  # fmt: skip
    found = message_reply(reply, "m", "0f", {}, None)
    assert found is not None
    assert found["usage"]["service_tier"] == "standard"


CALLS = st.lists(
    st.fixed_dictionaries(
        {"id": st.sampled_from(["c1", "", None]),
         "function": st.fixed_dictionaries({"name": st.sampled_from(["find", "short", "", None]),
                                            "arguments": st.sampled_from(['{"q": 1}', "", "[1]", "no json", {"q": 1}, None])})},
        optional={"type": st.just("function"), "index": st.just(0), "extra_content": st.just({"google": {"thought_signature": "s"}})},
    ),
    max_size=2,
)  # fmt: skip
MESSAGE = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": st.one_of(TEXTS, st.just([{"type": "text", "text": "part"}]))},
    optional={
        "tool_calls": CALLS | st.none(), "refusal": TEXTS, "reasoning_content": TEXTS, "reasoning": TEXTS,
        "annotations": st.sampled_from([[], None, [{"type": "url_citation", "url_citation": {"url": "u", "start_index": 0, "end_index": 1}}]]),
        "thinking_blocks": st.sampled_from([[], [{"type": "thinking", "thinking": "t", "signature": "s"}]]), "images": st.just([]),
    },
)  # fmt: skip
CHOICE = st.fixed_dictionaries(
    {"message": MESSAGE | st.none(), "finish_reason": st.sampled_from(["stop", "length", "tool_calls", "odd", None, 5])},
    optional={"index": st.just(0), "logprobs": st.sampled_from([None, {"content": []}])},
)
REPLY = st.fixed_dictionaries(
    {"choices": st.lists(CHOICE, max_size=2)},
    optional={
        "id": TEXTS, "model": TEXTS, "object": st.just("chat.completion"), "created": st.just(1),
        "service_tier": st.sampled_from(["default", "priority", "flex", None, 5]),
        "usage": st.sampled_from([None, {"prompt_tokens": 3, "completion_tokens": 4}, {"total_tokens": "x"}]),
        "error": st.sampled_from([None, {"message": "no"}]), "provider": st.just("p"),
    },
)  # fmt: skip


def told(reply: Any, body: Any, asked: TranslatedRequest) -> tuple[str, Any]:
    try:
        return "told", json.dumps(reply(body, asked))
    except UpstreamGarbage as error:
        return "garbage", str(error)


@settings(max_examples=effort.examples(600), deadline=None)
@given(body=REPLY)
def test_replies_are_what_the_general_translation_makes(body: dict[str, Any]) -> None:
    asked = TranslatedRequest(body={}, stream=False, model="asked", names={"short": "a long name"}, created=7, ident="0f")
    before = json.dumps(body)
    expected = told(PAIR.reply_at_length, body, replace(asked))
    assert told(PAIR.reply, body, asked) == expected
    usage = completions_usage(body.get("usage"))
    assert told(lambda found, state: PAIR.reply(found, state, usage), body, asked) == expected
    assert json.dumps(body) == before


@pytest.mark.parametrize("wrong", [[], None, "text", 5])
def test_entry_points_want_objects(wrong: Any) -> None:
    for call in (lambda: chat_turns(wrong, 40), lambda: chat_request(wrong, "m", 40), lambda: message_reply(wrong, "m", "0f", {}, None)):
        with pytest.raises(TypeError):
            call()
