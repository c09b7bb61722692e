"""The pass over a text: what is JSON and what is not, and where that shows."""

from __future__ import annotations

import json

import effort
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from json_full import full

from headgate_engine.peek.json import MAX_DEPTH, ChatPeek, DepthError, ObjectPeek, PeekError, UsagePeek
from headgate_engine.peek.scan import FAULTS

# What json.loads says otherwise, and why we do not follow it.
DELIBERATE = {
    "NaN, Infinity and -Infinity are no JSON (RFC 8259 section 6)": b"[NaN]",
    "a byte order mark is not to be sent (RFC 8259 section 8.1)": b"\xef\xbb\xbf{}",
    "UTF-16 is not read": '{"a":1}'.encode("utf-16"),
}

REFUSED = [
    (b"", "text ends too early", 0),
    (b"  ", "text ends too early", 2),
    (b"{", "text ends too early", 1),
    (b'{"a"', "text ends too early", 4),
    (b'{"a":', "text ends too early", 5),
    (b'{"a":1', "text ends too early", 6),
    (b'{"a":1,', "text ends too early", 7),
    (b"[1,", "text ends too early", 3),
    (b'"abc', "text ends too early", 4),
    (b"}", "expected a value", 0),
    (b"[,1]", "expected a value", 1),
    (b"[1,]", "expected a value", 3),
    (b"tru", "expected a value", 0),
    (b"[nul]", "expected a value", 1),
    (b"'a'", "expected a value", 0),
    (b"{,}", "expected a member name", 1),
    (b'{"a":1,}', "expected a member name", 7),
    (b"{a:1}", "expected a member name", 1),
    (b"{1:1}", "expected a member name", 1),
    (b'{"a" 1}', "expected a colon", 5),
    (b'{"a",1}', "expected a colon", 4),
    (b'{"a":1]', "expected a comma or an end", 6),
    (b"[1}", "expected a comma or an end", 2),
    (b"[1 2]", "expected a comma or an end", 3),
    (b'[1:2]', "expected a comma or an end", 2),
    (b'"a\nb"', "bad string", 2),
    (b'"a\0b"', "bad string", 2),
    (b'"\\x"', "bad string", 1),
    (b'"\\u12g4"', "bad string", 1),
    (b'"\\u12', "bad string", 1),
    (b'"\\', "bad string", 1),
    (b"-", "bad number", 1),
    (b"[-a]", "bad number", 2),
    (b"1.", "bad number", 2),
    (b"1.e3", "bad number", 2),
    (b"1e", "bad number", 2),
    (b"1e+", "bad number", 3),
    (b"01", "text behind the value", 1),
    (b"{}{}", "text behind the value", 2),
    (b"[] x", "text behind the value", 3),
    (b"1\0", "text behind the value", 1),
    (b'"\xff"', "invalid UTF-8", 1),
    (b'"a\xc3"', "invalid UTF-8", 2),
    (b'"\xc0\xaf"', "invalid UTF-8", 1),
    (b'"\xe0\x80\xaf"', "invalid UTF-8", 1),
    (b'"\xed\xa0\x80"', "invalid UTF-8", 1),
    (b'"\xf0\x8f\xbf\xbf"', "invalid UTF-8", 1),
    (b'"\xf4\x90\x80\x80"', "invalid UTF-8", 1),
    (b'"\xf5\x80\x80\x80"', "invalid UTF-8", 1),
    (b'"\xe2\x82', "invalid UTF-8", 1),
    (b'"\x80"', "invalid UTF-8", 1),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason", "offset"), REFUSED, ids=[repr(case[0]) for case in REFUSED])
def test_what_is_no_json_is_refused_at_the_byte_that_shows_it(text: bytes, reason: str, offset: int) -> None:
    with pytest.raises(PeekError) as caught:
        ChatPeek().peek(text)
    assert (str(caught.value), caught.value.offset) == (f"{reason} at byte {offset}", offset)
    assert full(text) is None


def test_every_fault_has_a_case_above() -> None:
    assert {case[1] for case in REFUSED} | {"nested too deeply"} == set(FAULTS.values())


@pytest.mark.parametrize("text", DELIBERATE.values(), ids=DELIBERATE.keys())
def test_deliberate_differences_are_refused_here_and_taken_there(text: bytes) -> None:
    with pytest.raises(PeekError):
        ChatPeek().peek(text)
    json.loads(text)


@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"a":', b"}")], ids=["arrays", "objects"])
@pytest.mark.parametrize("most", [1, 64, MAX_DEPTH])
def test_nesting_is_taken_up_to_the_limit_and_no_further(brackets: tuple[bytes, bytes], most: int) -> None:
    begin, end = brackets
    ChatPeek(most).peek(begin * most + b"1" + end * most)
    with pytest.raises(DepthError) as caught:
        ChatPeek(most).peek(begin * (most + 1) + b"1" + end * (most + 1))
    assert caught.value.offset == len(begin) * most
    with pytest.raises(DepthError):
        ChatPeek(most).peek(begin * 1_000_000)


@pytest.mark.parametrize("depth", [0, -1, MAX_DEPTH + 1])
def test_a_depth_out_of_range_is_refused(depth: int) -> None:
    with pytest.raises(ValueError, match="depth"):
        ChatPeek(depth)


def test_the_default_depth_is_64() -> None:
    assert ChatPeek().max_depth == UsagePeek().max_depth == ObjectPeek().max_depth == 64


def test_a_deep_text_takes_linear_time_also_below_watched_names() -> None:
    # Each level looks like one that is watched: none may be read twice.
    level = b'{"usage":{"prompt_tokens_details":'
    text = level * 200 + b"1" + b"}}" * 200
    peek = UsagePeek(MAX_DEPTH)
    peek.peek(text)
    assert peek.has_usage
    assert peek.cached_tokens == -1


TEXT = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(['"\\', "\x7f\x80", "😀é", "a" * 40])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
WRITTEN = st.tuples(VALUES, st.booleans(), st.sampled_from([None, 1, "\t"]))
TOKENS = st.sampled_from(
    [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u00e9", b"\\ud800", b"\\n", b"true", b"null", b"-", b"0", b"1",
     b".5", b"e+3", b" ", b"\n", b"\x00", b"\x1f", b"\x7f", b"\xc3\xa9", b"\xff", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80",
     b'"a"', b'"a":1', b"NaN", b"Infinity", b"/", b"'", b"1e400", b"12345678"]
)  # fmt: skip


@given(st.data(), WRITTEN, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), TOKENS), max_size=3))
@settings(max_examples=effort.examples(600), deadline=None)
def test_a_text_is_taken_exactly_when_the_standard_parser_takes_it(
    data: st.DataObject, written: tuple[object, bool, object], breaks: list[tuple[int, int, bytes]]
) -> None:
    value, ascii_only, indent = written
    text = bytearray(json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode())  # type: ignore[arg-type]
    for at, gone, token in breaks:
        at = at % (len(text) + 1)
        text[at : at + gone] = token
    agree(bytes(text))


@given(st.lists(TOKENS, max_size=12).map(b"".join))
@settings(max_examples=effort.examples(600), deadline=None)
@example(b'{"a":"\\ud800"}')
@example(b"-0.0e-0")
@example(b" [ ] ")
@example(b'"' + b"a" * 7 + b"\x1f" + b"a" * 8 + b'"')
def test_any_row_of_tokens_is_judged_as_by_the_standard_parser(text: bytes) -> None:
    agree(text)


def agree(text: bytes) -> None:
    parsed = full(text)
    fault: PeekError | None = None
    try:
        ChatPeek(MAX_DEPTH).peek(text)
    except PeekError as error:
        fault = error
    refused_there = parsed is None or parsed.depth > MAX_DEPTH
    assert (fault is not None) is refused_there
    assert fault is None or 0 <= fault.offset <= len(text)


@pytest.mark.parametrize("lead", range(35))
@pytest.mark.parametrize("odd", [b'"', b"\\", b"\x1f", b"\x80", b"\xc3", b"\x00"], ids=repr)
def test_no_place_in_a_word_hides_an_odd_byte(lead: int, odd: bytes) -> None:
    for tail in (b"a" * 9, b"\x7f" * 9, b" " * 9, b"!" * 9, b"#" * 9, b"[" * 9, b"]" * 40):
        agree(b'"' + tail[:1] * lead + odd + tail + b'"')
