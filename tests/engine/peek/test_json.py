"""The peeks: the same values as a full parse, the spans to splice at, and a word about what stands twice."""

from __future__ import annotations

import json
from collections.abc import Iterable

import effort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_full import Full, full, whole

from headgate_drivers.requests import id_span, params_span
from headgate_engine.peek.json import (
    CHAT_FIELDS,
    RPC_FIELDS,
    USAGE_FIELDS,
    ChatPeek,
    ObjectPeek,
    PeekError,
    RpcPeek,
    UsagePeek,
)

TOOL, URI, VERSION = ("params", "name"), ("params", "uri"), ("params", "protocolVersion")
STRING, NUMBER, TRUE, FALSE, NULL, OBJECT, ARRAY = range(1, 8)


def test_a_chat_request_tells_its_model_and_how_it_wants_the_answer() -> None:
    text = b'{"messages":[{"role":"user","content":"hi"}], "model" : "gpt-x" ,"stream":true}'
    peek = ChatPeek()
    assert peek.peek(text) == ("gpt-x", True, False, (text.index(b'"gpt-x"'), text.index(b'"gpt-x"') + 7))
    assert peek.is_object
    assert not peek.duplicate
    assert text[peek.object_end :] == b"}"


def test_settings_that_are_no_settings_break_nothing() -> None:
    peek = ChatPeek()
    peek.peek(b'{"model":"m","seed":' + b"9" * 100_000 + b',"encoding_format":"' + b"x" * 1000 + b'","top_p":[1]}')
    assert peek.params() is None
    peek.peek(b'{"seed":7,"temperature":0.5,"encoding_format":"f\\u006coat","dimensions":null}')
    assert peek.params() == {"seed": 7, "temperature": 0.5, "encoding_format": "float"}


def test_a_model_is_replaced_in_place() -> None:
    text = b'{"a":"\\u00e9","model":"old\\n","b":[]}'
    peek = ChatPeek()
    assert peek.peek(text)[0] == "old\n"
    assert json.loads(text[: peek.model_start] + b'"new"' + text[peek.model_stop :])["model"] == "new"


@pytest.mark.parametrize(
    ("text", "has", "include"),
    [
        (b"{}", False, False),
        (b'{"stream_options":{"include_usage":true}}', True, True),
        (b'{"stream_options":{"include_usage":false}}', True, False),
        (b'{"stream_options":{"include_usage":"true"}}', True, False),
        (b'{"stream_options":null}', True, False),
        (b'{"stream_options":[{"include_usage":true}]}', True, False),
        (b'{"include_usage":true,"x":{"stream_options":{"include_usage":true}}}', False, False),
        (b'{"stream_options":{"a":{"include_usage":true}}}', True, False),
    ],
    ids=["none", "true", "false", "text", "null", "in a list", "elsewhere", "too deep"],
)
def test_stream_options_are_read_where_they_belong(text: bytes, has: bool, include: bool) -> None:
    peek = ChatPeek()
    peek.peek(text)
    assert (peek.has_stream_options, peek.include_usage) == (has, include)


@pytest.mark.parametrize(
    ("text", "kind", "end", "empty"),
    [
        (b" { } ", OBJECT, 3, True),
        (b"[]", ARRAY, 1, True),
        (b'{"a":{}}', OBJECT, 7, False),
        (b"[[]]", ARRAY, 3, False),
        (b'"s"', STRING, -1, False),
        (b"-1", NUMBER, -1, False),
        (b"true", TRUE, -1, False),
        (b"false", FALSE, -1, False),
        (b"null", NULL, -1, False),
    ],
    ids=repr,
)
def test_a_text_tells_what_it_is_and_where_it_closes(text: bytes, kind: int, end: int, empty: bool) -> None:
    peek = ChatPeek()
    peek.peek(text)
    assert (peek.kind, peek.object_end, peek.empty) == (kind, end, empty)


@pytest.mark.parametrize(
    ("text", "model"),
    [
        (b'{"model":"a","model":"b"}', "b"),
        (b'{"model":"a","mod\\u0065l":"b"}', "b"),
        (b'{"m\\u006Fdel":"a","x":1,"model":"a"}', "a"),
        (b'{"model":"a","model":7}', None),
    ],
)
def test_of_two_models_the_last_one_counts_and_a_word_is_said(text: bytes, model: str | None) -> None:
    peek = ChatPeek()
    assert peek.peek(text)[0] == model
    assert peek.duplicate
    assert peek.duplicate_model
    assert json.loads(text)["model"] == (7 if model is None else model)


@pytest.mark.parametrize(
    "name", ["mode", "models", "Model", "model\\u0000", "\\u006d", "\\nmodel", "mod\\u00e9l", "\\/model", "mode\\u016c"]
)
def test_a_name_that_only_looks_alike_is_not_watched(name: str) -> None:
    peek = ChatPeek()
    assert peek.peek(f'{{"{name}":"x"}}'.encode())[0] is None
    assert not peek.has_model


def test_what_a_later_object_replaces_is_forgotten() -> None:
    peek = UsagePeek()
    text = b'{"usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":2}},"usage":{"total_tokens":3}}'
    assert peek.peek(text) == (-1, -1, 3, -1, -1)
    assert peek.duplicate
    assert peek.peek(b'{"usage":{"prompt_tokens":1},"usage":null}') is None
    assert peek.duplicate
    assert peek.input_tokens == -1


USAGES = [
    (b'{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}', (5, 7, 12, -1, -1)),
    (b'{"input_tokens":5,"output_tokens":7}', (5, 7, -1, -1, -1)),
    (
        b'{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":3,"audio_tokens":1},'
        b'"completion_tokens":7,"completion_tokens_details":{"reasoning_tokens":4},"total_tokens":12}',
        (5, 7, 12, 3, 4),
    ),
    (
        b'{"input_tokens":5,"input_tokens_details":{"cached_tokens":3},'
        b'"output_tokens":7,"output_tokens_details":{"reasoning_tokens":0}}',
        (5, 7, -1, 3, 0),
    ),
    (b'{"prompt_tokens":5,"cached_tokens":2,"reasoning_tokens":1}', (5, -1, -1, 2, 1)),
    (b'{"prompt_tokens":-5,"completion_tokens":1.5,"total_tokens":1e3}', (-1, -1, -1, -1, -1)),
    (b'{"prompt_tokens":"5","completion_tokens":null,"total_tokens":[1]}', (-1, -1, -1, -1, -1)),
    (b'{"prompt_tokens":999999999999999999,"total_tokens":1000000000000000000}', (999999999999999999, -1, -1, -1, -1)),
    (b'{"prompt_tokens_details":null,"x":{"prompt_tokens":1}}', (-1, -1, -1, -1, -1)),
    (b"{}", (-1, -1, -1, -1, -1)),
]


@pytest.mark.parametrize(("usage", "expected"), USAGES, ids=range(len(USAGES)))
def test_usage_is_read_in_every_spelling(usage: bytes, expected: tuple[int, ...]) -> None:
    peek = UsagePeek()
    assert peek.peek(b'{"id":"x","choices":[],"usage":' + usage + b',"model":"m\\u00e9"}') == expected
    assert (peek.has_usage, peek.choices_empty, peek.model) == (True, True, "mé")


@pytest.mark.parametrize(
    ("text", "empty"),
    [(b'{"choices":[ \n]}', True), (b'{"choices":[{}]}', False), (b'{"choices":{}}', False), (b"{}", False)],
)
def test_empty_choices_are_an_empty_array(text: bytes, empty: bool) -> None:
    peek = UsagePeek()
    assert peek.peek(text) is None
    assert peek.choices_empty is empty


def test_a_json_rpc_request_tells_its_envelope() -> None:
    text = b'{"jsonrpc":"2.0","id": "a\\u0031" ,"method":"tools\\/call","params":{"name":"\\u00e9cho","arguments":{}}}'
    peek = RpcPeek()
    peek.peek(text)
    start, stop = id_span(peek)
    assert text[start:stop] == b'"a\\u0031"'
    assert [peek.string(*path) for path in (("jsonrpc",), ("method",), TOOL)] == ["2.0", "tools/call", "écho"]
    assert (peek.id_kind, peek.has_result, peek.has_error, peek.duplicate) == (STRING, False, False, False)
    start, stop = params_span(peek)
    assert json.loads(text[start:stop]) == {"name": "écho", "arguments": {}}
    assert (peek.string(*URI), peek.string(*VERSION)) == (None, None)
    with pytest.raises(KeyError):
        peek.string("params", "arguments")


@pytest.mark.parametrize(
    ("member", "kind"),
    [(b'"id":7', NUMBER), (b'"id":null', NULL), (b'"id":"x"', STRING), (b'"id":[]', ARRAY), (b'"x":1', 0)],
)
def test_an_id_tells_its_kind(member: bytes, kind: int) -> None:
    peek = RpcPeek()
    peek.peek(b'{"method":"m",' + member + b"}")
    assert (peek.id_kind, peek.has_id) == (kind, kind != 0)


def test_names_and_addresses_are_read_from_the_params_only() -> None:
    peek = RpcPeek()
    peek.peek(b'{"name":"no","params":{"arguments":{"name":"no"},"uri":"file:///x","protocolVersion":"2025-06-18"}}')
    assert (peek.string(*TOOL), peek.string(*URI), peek.string(*VERSION)) == (None, "file:///x", "2025-06-18")
    peek.peek(b'{"params":[{"name":"no"}]}')
    assert (peek.string(*TOOL), peek.has_params) == (None, True)


def test_a_batch_is_an_array_and_tells_nothing_of_its_messages() -> None:
    peek = RpcPeek()
    peek.peek(b'[{"jsonrpc":"2.0","id":1,"method":"m"}]')
    assert (peek.kind == ARRAY, peek.is_object, peek.has_id, peek.has_method) == (True, False, False, False)


@pytest.mark.parametrize(
    "text", [b'{"id":1,"id":1}', b'{"params":{"name":"a","name":"b"}}', b'{"method":"a","m\\u0065thod":"b"}']
)
def test_a_message_that_says_something_twice_is_marked(text: bytes) -> None:
    peek = RpcPeek()
    peek.peek(text)
    assert peek.duplicate


def test_after_a_refusal_nothing_of_the_text_or_the_one_before_is_left() -> None:
    rpc, chat, usage = RpcPeek(), ChatPeek(), UsagePeek()
    good = b'{"id":1,"method":"m","model":"m","stream":true,"usage":{"prompt_tokens":1},"model":"x"}'
    for peek in (rpc, chat, usage):
        peek.peek(good)
        with pytest.raises(PeekError):
            peek.peek(good[:-1] + b",}")
        assert (peek.kind, peek.object_end, peek.empty, peek.duplicate) == (0, -1, False, False)
    assert (rpc.has_id, rpc.string("method"), id_span(rpc)) == (False, None, (0, 0))
    assert (chat.has_model, chat.model_is_string, chat.stream, chat.model_stop) == (False, False, False, 0)
    assert (usage.has_usage, usage.input_tokens, usage.model) == (False, -1, None)


def test_a_fresh_peek_has_found_nothing() -> None:
    assert (UsagePeek().input_tokens, UsagePeek().model, RpcPeek().string("method"), ChatPeek().object_end) == (
        -1,
        None,
        None,
        -1,
    )
    assert ObjectPeek().kind == 0


def test_only_bytes_are_peeked_at() -> None:
    for peek in (ChatPeek(), UsagePeek(), RpcPeek()):
        with pytest.raises(TypeError):
            peek.peek(None)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            peek.peek("{}")  # type: ignore[arg-type]


def written(name: str) -> st.SearchStrategy[str]:
    """A name as JSON, some of its letters escaped."""
    return st.lists(st.booleans(), min_size=len(name), max_size=len(name)).map(
        lambda marks: '"' + "".join(f"\\u{ord(c):04X}" if m else c for c, m in zip(name, marks, strict=True)) + '"'
    )


NAMES = sorted({name for table in (CHAT_FIELDS, USAGE_FIELDS, RPC_FIELDS) for path in table.values() for name in path})
NAME = st.sampled_from([*NAMES, "x", ""]).flatmap(lambda name: st.just(json.dumps(name)) | written(name))
LEAF = st.sampled_from(
    ["1", "0", "-1", "true", "false", "null", '"a"', '"\\u00e9\\n"', '"\\ud83d"', "1.5", "[]", "{}", "[ ]", '"😀"',
     "123456789012345678", "1234567890123456789"]
)  # fmt: skip
BLANK = st.sampled_from(["", "", "", " ", "\n\t"])


def objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.tuples(BLANK, NAME, BLANK, inner, BLANK).map(lambda t: f"{t[0]}{t[1]}{t[2]}:{t[3]}{t[4]}")
    return st.lists(member, max_size=6).map(lambda members: "{" + ",".join(members) + "}")


DOCUMENT = objects(st.recursive(LEAF, lambda inner: objects(inner) | inner.map("[{}]".format), max_leaves=12))


def string_at(parsed: Full, *path: str) -> str | None:
    return next((value for value in parsed.at(path) if isinstance(value, str)), None)


def count_at(parsed: Full, paths: Iterable[tuple[str, ...]]) -> int:
    """The first of the paths that tells a count."""
    told = [whole(value) for path in paths for value in parsed.at(path)]
    return next((count for count in told if count >= 0), -1)


def compare_chat_peek(text: str) -> None:
    raw = text.encode()
    parsed, peek = full(raw), ChatPeek()
    assert parsed is not None
    model, stream, options, (start, stop) = peek.peek(raw)
    assert model == string_at(parsed, "model")
    assert stream is (parsed.at(("stream",)) == [True] and parsed.at(("stream",))[0] is True)
    assert options is bool(parsed.at(("stream_options",)))
    assert peek.include_usage is any(value is True for value in parsed.at(("stream_options", "include_usage")))
    assert peek.duplicate is parsed.duplicate(CHAT_FIELDS.values())
    assert peek.empty is (len(parsed.value) == 0)
    assert raw[peek.object_end : peek.object_end + 1] == b"}"
    assert raw[peek.object_end + 1 :].strip() == b""
    if peek.has_model:
        again = full(raw[start:stop])
        assert again is not None
        assert [again.value] == parsed.at(("model",))


def compare_usage_peek(text: str) -> None:
    parsed, peek = full(text.encode()), UsagePeek()
    assert parsed is not None
    peek.peek(text.encode())
    details = [("usage", f"{word}_tokens_details") for word in ("prompt", "input", "completion", "output")]
    assert peek.input_tokens == count_at(parsed, [("usage", "prompt_tokens"), ("usage", "input_tokens")])
    assert peek.output_tokens == count_at(parsed, [("usage", "completion_tokens"), ("usage", "output_tokens")])
    assert peek.total_tokens == count_at(parsed, [("usage", "total_tokens")])
    cached = [(*details[0], "cached_tokens"), (*details[1], "cached_tokens"), ("usage", "cached_tokens")]
    assert peek.cached_tokens == count_at(parsed, cached)
    reasoning = [(*details[2], "reasoning_tokens"), (*details[3], "reasoning_tokens"), ("usage", "reasoning_tokens")]
    assert peek.reasoning_tokens == count_at(parsed, reasoning)
    assert peek.model == string_at(parsed, "model")
    assert peek.choices_empty is (parsed.at(("choices",)) == [[]] and type(parsed.at(("choices",))[0]) is list)
    assert peek.duplicate is parsed.duplicate(USAGE_FIELDS.values())


def compare_rpc_peek(text: str) -> None:
    raw = text.encode()
    parsed, peek = full(raw), RpcPeek()
    assert parsed is not None
    peek.peek(raw)
    for path in RPC_FIELDS.values():
        assert peek.string(*path) == string_at(parsed, *path)
    for has, name in ((peek.has_result, "result"), (peek.has_error, "error"), (peek.has_method, "method")):
        assert has is bool(parsed.at((name,)))
    for (start, stop), name in ((id_span(peek), "id"), (params_span(peek), "params")):
        again = full(raw[start:stop])
        assert ([again.value] if again else []) == parsed.at((name,))
    assert peek.duplicate is parsed.duplicate(RPC_FIELDS.values())


# One document for all three: making documents takes longer than reading them.
@given(DOCUMENT)
@settings(max_examples=effort.examples(500), deadline=None)
def test_every_peek_says_what_a_full_parse_says(text: str) -> None:
    compare_chat_peek(text)
    compare_usage_peek(text)
    compare_rpc_peek(text)
