"""Writing event streams: what goes in comes out of the reader, and nothing else does."""

from __future__ import annotations

import re

import effort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sse_naive import naive

from headgate_engine.sse.decode import SseDecoder
from headgate_engine.sse.encode import encode_comment, encode_event


def test_an_event_is_written_as_its_fields_and_a_blank_line() -> None:
    assert encode_event(b"{}") == b"data: {}\n\n"
    assert encode_event(b"", event="ping") == b"event: ping\ndata: \n\n"
    assert encode_event(b"a\nb", event="e", id="7", retry=250) == b"retry: 250\nevent: e\nid: 7\ndata: a\ndata: b\n\n"


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\r\ndata: stolen", "\n", "a\0"], ids=repr)
def test_a_line_break_in_a_name_an_id_or_a_comment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        encode_event(b"x", event=text)
    with pytest.raises(ValueError, match="line break"):
        encode_event(b"x", event="fine", id=text)
    with pytest.raises(ValueError, match="line break"):
        encode_comment(text)


@pytest.mark.parametrize("retry", [-1, -(2**63)])
def test_a_negative_reconnection_time_is_refused(retry: int) -> None:
    with pytest.raises(ValueError):
        encode_event(b"x", retry=retry)


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(ValueError):
        encode_event(b"x", event="\ud800")


def test_only_bytes_are_data() -> None:
    for wrong in (None, "x"):
        with pytest.raises(TypeError):
            encode_event(wrong)  # type: ignore[arg-type]


def test_a_comment_says_nothing_to_the_reader() -> None:
    assert encode_comment() == b": \n\n"
    assert SseDecoder().decode(encode_comment("data: x")) == []


WORD = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=10)
DATA = st.one_of(
    st.binary(max_size=30),
    st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b" ", b"data: x", b"event: x", b":", b"id: 1"]), max_size=8).map(
        b"".join
    ),
)


@given(DATA, st.none() | WORD, st.none() | WORD, st.none() | st.integers(0, 2**53 - 1))
@settings(max_examples=effort.examples(400), deadline=None)
def test_what_is_written_is_read_again_as_one_event(
    data: bytes, event: str | None, event_id: str | None, retry: int | None
) -> None:
    stream = encode_event(data, event=event, id=event_id, retry=retry)
    expected = (event or "message", re.sub(rb"\r\n|\r", b"\n", data), event_id, retry)
    assert SseDecoder().decode(stream) == naive(stream)[0] == [expected]
    assert SseDecoder().split(stream)[0][0] == stream
