"""Event streams: the events of the standard, whatever the cut, and every byte accounted for."""

from __future__ import annotations

import effort
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sse_naive import naive

from headgate_engine.sse.decode import DEFAULT_MAX_EVENT, MAX_RETRY, Event, SseDecoder, SseError

CASES = {
    "one line": (b"data: a\n\n", [("message", b"a", None, None)]),
    "no blank behind the colon": (b"data:a\n\n", [("message", b"a", None, None)]),
    "only one blank goes": (b"data:  a\n\n", [("message", b" a", None, None)]),
    "several lines": (b"data: a\ndata:\ndata: b\n\n", [("message", b"a\n\nb", None, None)]),
    "data without a colon": (b"data\n\n", [("message", b"", None, None)]),
    "data without a colon twice": (b"data\ndata\n\n", [("message", b"\n", None, None)]),
    "all fields": (b"event: e\nid: 7\nretry: 10\ndata: x\n\n", [("e", b"x", "7", 10)]),
    "CR LF": (b"event: e\r\ndata: x\r\n\r\n", [("e", b"x", None, None)]),
    "CR": (b"event: e\rdata: x\r\r", [("e", b"x", None, None)]),
    "all line ends": (b"data: x\r\ndata: y\rdata: z\n\r\n", [("message", b"x\ny\nz", None, None)]),
    "byte order mark": (b"\xef\xbb\xbfdata: x\n\n", [("message", b"x", None, None)]),
    "a second mark is a name": (b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\n", []),
    "a mark later is a name": (b"data: x\n\n\xef\xbb\xbfdata: y\n\n", [("message", b"x", None, None)]),
    "a mark and a blank line": (b"\xef\xbb\xbf\ndata: x\n\n", [("message", b"x", None, None)]),
    "comments": (b": c\n:\ndata: x\n: in between\ndata: y\n\n:\n\n", [("message", b"x\ny", None, None)]),
    "unknown fields": (b"foo: 1\nfoo\ndata : 1\nDATA: 1\ndata: x\n\n", [("message", b"x", None, None)]),
    "no data, no event": (b"event: e\nid: 1\n\ndata: x\n\n", [("message", b"x", None, None)]),
    "unfinished": (b"data: x\n\ndata: y\n", [("message", b"x", None, None)]),
    "the last name counts": (b"event: a\nevent: b\ndata: x\n\n", [("b", b"x", None, None)]),
    "an empty name is none": (b"event: a\nevent:\ndata: x\n\n", [("message", b"x", None, None)]),
    "an empty id is an id": (b"id: a\nid\ndata: x\n\n", [("message", b"x", "", None)]),
    "an id with NUL is ignored": (b"id: a\nid: b\0\ndata: x\n\n", [("message", b"x", "a", None)]),
    "retry takes digits only": (b"retry: 1a\nretry: -1\nretry:\nretry\ndata: x\n\n", [("message", b"x", None, None)]),
    "retry with zeroes": (b"retry: 0000000000000000000000012\ndata: x\n\n", [("message", b"x", None, 12)]),
    "a huge retry": (b"retry: " + b"9" * 6000 + b"\ndata: x\n\n", [("message", b"x", None, MAX_RETRY)]),
    "a colon in the value": (b"data: a: b\n\n", [("message", b"a: b", None, None)]),
    "bytes that are no UTF-8": (b"event: \xff\nid: \xc3\ndata: \xff\n\n", [("\ufffd", b"\xff", "\ufffd", None)]),
}


@pytest.mark.parametrize("size", [1, 2, 3, 10000], ids="{} bytes".format)
@pytest.mark.parametrize(("stream", "events"), CASES.values(), ids=CASES.keys())
def test_a_stream_has_the_events_of_the_standard(
    stream: bytes, events: list[tuple[str, bytes, str | None, int | None]], size: int
) -> None:
    decoder = SseDecoder()
    found = [event for at in range(0, len(stream), size) for event in decoder.decode(stream[at : at + size])]
    assert found == events == naive(stream)[0]


def test_an_event_that_ends_in_cr_does_not_wait_for_the_next_byte() -> None:
    decoder = SseDecoder()
    assert decoder.split(b"data: x\r\n\r") == [(b"data: x\r\n\r", Event("message", b"x", None, None))]
    assert decoder.split(b"\ndata: y\n\n") == [(b"\n", None), (b"data: y\n\n", Event("message", b"y", None, None))]


def test_a_comment_between_events_does_not_wait_for_one() -> None:
    decoder = SseDecoder()
    assert decoder.split(b": ping\n") == [(b": ping\n", None)]
    assert decoder.split(b"\ndata: x\n: inside\n") == [(b"\n", None)]
    assert decoder.split(b"\n") == [(b"data: x\n: inside\n\n", Event("message", b"x", None, None))]


def test_blocks_without_data_are_passed_on_and_dispatch_nothing() -> None:
    decoder = SseDecoder()
    assert decoder.split(b"id: 5\nretry: 3\n\n") == [(b"id: 5\nretry: 3\n\n", None)]
    assert decoder.last_event_id == "5"


def test_the_rest_is_what_no_block_has_yet() -> None:
    decoder = SseDecoder()
    assert decoder.rest() == b""
    decoder.split(b"data: x\n\ndata: y\nda")
    assert decoder.rest() == b"data: y\nda"
    decoder.split(b"ta: z\n\n")
    assert decoder.rest() == b""


def test_an_id_counts_from_its_blank_line_on_and_stays() -> None:
    decoder = SseDecoder()
    decoder.decode(b"id: 1\ndata: x\n")
    assert decoder.last_event_id == ""
    decoder.decode(b"\ndata: y\n\n")
    assert decoder.last_event_id == "1"


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize(
    ("stream", "fits"),
    [
        (b"data: 6789\n\n", True),
        (b"data: 67890\n\n", False),
        (b"data: 67890", True),
        (b"data: 678901", False),
        (b": 34567890\n\n", True),
        (b": 345678901\n\n", True),
        (b": 3456789012\n\n", False),
        (b"a\nb\nc\nd\ne\nf\n\n", False),
        (b"data: 678\r\n\r\ndata: 678\r\n\r\n", True),
        (b"data: 6789\r\n\r\n", False),
        (b"data: 6\n\n" * 50, True),
    ],
)
def test_a_block_is_taken_up_to_the_limit_and_no_further(stream: bytes, fits: bool, size: int) -> None:
    # 11 bytes: the line end counts, the blank line does not.
    decoder = SseDecoder(11)
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    if fits:
        assert sum(len(raw) for piece in pieces for raw, _event in decoder.split(piece)) + len(decoder.rest()) == len(
            stream
        )
        return
    with pytest.raises(SseError):
        any(decoder.split(piece) is None for piece in pieces)
    with pytest.raises(SseError):
        decoder.split(b"\n\n")


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_is_positive(limit: int) -> None:
    with pytest.raises(ValueError):
        SseDecoder(limit)


def test_the_default_limit_is_8_mib() -> None:
    assert SseDecoder().max_event == DEFAULT_MAX_EVENT == 8 * 1024 * 1024


@pytest.mark.parametrize("size", [37, 1000, 1 << 20])
@pytest.mark.parametrize("unit", [b"\r", b"a\r", b"\n", b":\r", b"data\r\n", b"a", b"data: " + b"x" * 90 + b"\r\r"], ids=repr)
def test_work_is_linear_whatever_the_line_ends(unit: bytes, size: int) -> None:
    stream, decoder = unit * (40_000 // len(unit)), SseDecoder()
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    for piece in pieces:
        decoder.split(piece)
    # Each byte once for either line end, and what a feed finds unfinished once more.
    assert len(stream) <= decoder.looked_at <= 3 * len(stream)


PIECES = st.sampled_from(
    [b"data", b"data:", b"data: ", b"event: ", b"id:", b"retry: ", b":", b": c", b" ", b"\r", b"\n", b"\r\n", b"\n\n",
     b"\r\n\r\n", b"\r\r", b"x", b"\0", b"12", b"\xef\xbb\xbf", b"\xff", b"\xc3\xa9", b"y" * 20]
)  # fmt: skip
STREAM = st.lists(PIECES, max_size=40).map(b"".join)
CUTS = st.lists(st.integers(1, 300), max_size=8)


@given(STREAM, CUTS)
@settings(max_examples=effort.examples(800), deadline=None)
@example(b"data: x\r\n\r\ndata: y\r\n\r\n", [10, 11])
@example(b"\xef\xbb\xbfdata: x\n\n", [1, 2])
def test_any_cut_gives_the_events_of_the_naive_reader_and_loses_no_byte(stream: bytes, cuts: list[int]) -> None:
    edges = sorted({0, *(cut for cut in cuts if cut < len(stream)), len(stream)})
    decoder, blocks = SseDecoder(), []
    for begin, end in zip(edges, edges[1:], strict=False):
        blocks += decoder.split(stream[begin:end])
    assert ([event for _raw, event in blocks if event], decoder.last_event_id) == naive(stream)
    assert b"".join(raw for raw, _event in blocks) + decoder.rest() == stream
    whole = SseDecoder().split(stream)
    assert [event for _raw, event in whole if event] == [event for _raw, event in blocks if event]
    # Each block means the same alone as in its stream: others can be left out around it.
    for number, (raw, event) in enumerate(whole):
        assert SseDecoder().decode(b"\n" + raw if number else raw) == ([event] if event else [])
