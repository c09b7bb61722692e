"""Plain turns come to what the general translations make of them, byte for byte, and nothing else is taken for plain."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import effort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.dialect.llm import pairs
from headgate.dialect.llm.contract import Options, Untranslatable
from headgate.dialect.llm.translate import completions_to_messages, converse_blocks
from headgate_engine.llm.translate.turns import converse_turn, messages_turn

IDS = st.sampled_from(["call_1", "a b/c", "x" * 64, "x" * 65, "", "call__thought__s", "\u00e9", 7, None])
TEXTS = st.sampled_from(["", "hi", '\u00e9\n"', " \n", "\u2003", " a ", None, 5])
NAMES = st.sampled_from(["find", "find it", "", None])
MARK = {"cache_control": st.sampled_from([{"type": "ephemeral"}, None])}
TEXT = st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}, optional=MARK)
ARGUMENTS = st.sampled_from(["", " ", "{}", '{"q":[1,"\u00e9"]}', "[1]", "text", '{"n":1e999}', None, 5])
CALL = st.fixed_dictionaries(
    {"id": IDS, "type": st.sampled_from(["function", "function", "custom", None]),
     "function": st.fixed_dictionaries({"name": NAMES, "arguments": ARGUMENTS}, optional={"strict": st.just(True)})},
    optional={"index": st.just(0)},
)  # fmt: skip
PART = st.one_of(
    TEXT,
    TEXT,
    st.sampled_from([{}, {"type": "refusal", "refusal": "no"}, {"type": "image_url", "image_url": {"url": "u"}}, 5]),
)
CHAT = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "assistant", "tool", "system", "odd", None])},
    optional={
        "content": TEXTS | st.lists(PART, max_size=3),
        "tool_calls": st.lists(CALL, max_size=3) | st.sampled_from([None, {}, [5]]),
        "tool_call_id": IDS,
        "refusal": st.sampled_from([None, "no"]),
        "annotations": st.sampled_from([None, [], [{"type": "url_citation"}]]),
        "function_call": st.sampled_from([None, {"name": "f", "arguments": "{}"}]),
        "reasoning_content": st.sampled_from([None, "", "why"]),
        "reasoning_signature": st.just("sig"),
        "is_error": st.booleans(),
        "name": st.just("n"),
        **MARK,
    },
)
RESULT = st.fixed_dictionaries(
    {"type": st.just("tool_result"), "tool_use_id": IDS},
    optional={"content": TEXTS | st.lists(PART, max_size=2), "is_error": st.sampled_from([True, False, None]), **MARK},
)
USE = st.fixed_dictionaries(
    {"type": st.just("tool_use"), "id": IDS, "name": NAMES, "input": st.sampled_from([{}, {"q": [1]}, "text", None])},
    optional=MARK,
)
THOUGHT = st.sampled_from(
    [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "thinking", "thinking": "t", "signature": ""}]
)
BLOCKS = TEXTS | st.lists(st.one_of(PART, RESULT, USE, USE, THOUGHT), max_size=4)
TURN = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "odd", None])}, optional={"content": BLOCKS}
)


def outcome(client: str, upstream: str, messages: list[Any]) -> tuple[Any, ...]:
    """What a pair makes of a request with these messages."""
    body = {"model": "m", "max_tokens": 9, "messages": messages}
    try:
        made = pairs.PAIRS[client, upstream].request(body, Options(model="claude-sonnet-4-5"))
    except Untranslatable as error:
        return ("refused", str(error))
    return json.dumps(made.body), made.stream, made.dropped, made.names, made.path_suffix


def compare(client: str, upstream: str, messages: list[Any]) -> None:
    """Both ways come to the same, and neither changes the request."""
    before = json.dumps(messages)
    quick = outcome(client, upstream, messages)
    assert json.dumps(messages) == before
    with (
        mock.patch.object(completions_to_messages, "messages_turn", return_value=None),
        mock.patch.object(converse_blocks, "converse_turn", return_value=None),
    ):
        assert quick == outcome(client, upstream, messages)


@settings(max_examples=effort.examples(800), deadline=None)
@given(messages=st.lists(CHAT, max_size=4), upstream=st.sampled_from(["messages", "converse"]))
def test_chats_become_what_the_general_translation_makes(messages: list[Any], upstream: str) -> None:
    compare("completions", upstream, messages)


@settings(max_examples=effort.examples(800), deadline=None)
@given(messages=st.lists(TURN, max_size=5))
def test_turns_become_what_the_general_translation_makes(messages: list[Any]) -> None:
    compare("messages", "converse", messages)


CALLED = {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": '{"q": 1}'}}
USED = {"type": "tool_use", "id": "call_1", "name": "find", "input": {"q": 1}}


@pytest.mark.parametrize(("message", "made"), [
    ({"role": "user", "content": "hi"}, ("user", [{"type": "text", "text": "hi"}])),
    ({"role": "user", "content": " "}, ("user", [])),
    ({"role": "assistant", "content": None, "refusal": None, "tool_calls": [CALLED]}, ("assistant", [USED])),
    ({"role": "tool", "tool_call_id": "call_1", "content": ""},
     ("user", [{"type": "tool_result", "tool_use_id": "call_1", "content": ""}])),
    ({"role": "user", "content": "hi", "cache_control": {"type": "ephemeral"}}, None),
    ({"role": "assistant", "content": "hi", "reasoning_content": "why"}, None),
    ({"role": "system", "content": "hi"}, None),
])  # fmt: skip
def test_the_short_way_is_taken_by_plain_messages(message: Any, made: Any) -> None:
    assert messages_turn(message) == made


def test_the_short_way_is_taken_by_plain_turns_with_known_tools() -> None:
    used: dict[str, None] = {}
    turn = {"role": "assistant", "content": [{"type": "text", "text": "so"}, USED]}
    use = {"toolUse": {"toolUseId": "call_1", "name": "find_", "input": {"q": 1}}}
    assert converse_turn(turn, {}, used) is None
    assert converse_turn(turn, {"find": "find_"}, used) == ([{"text": "so"}, use], 0)
    assert used == {"find_": None}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "42"}
    told = {"toolResult": {"toolUseId": "call_1", "content": [{"text": "42"}], "status": "success"}}
    assert converse_turn({"role": "user", "content": [result]}, {}, used) == ([told], 1)
    assert converse_turn({"role": "user", "content": [{**result, "is_error": True}]}, {}, used) is None
