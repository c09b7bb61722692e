"""Frames against the hyperframe package, in any pieces, and what must be refused."""

from __future__ import annotations

import hyperframe.frame as frames
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.http2 import Http2FrameWriter
from headgate_engine.http2.faults import ConnectionFault, StreamFault
from headgate_engine.http2.frames import PREFACE, Http2FrameReader
from headgate_engine.http2.kinds import ERRORS, error_name

Found = tuple[int, int, int, bytes, bool]


def raw(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def read(data: bytes, cuts: list[int] | None = None, **settings: int) -> list[Found]:
    """Frames of the bytes, cut; pieces of DATA are joined."""
    reader = Http2FrameReader(**settings)
    found: list[Found] = []
    joined = b""
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts or []), len(data)]
    for start, stop in zip(edges, edges[1:], strict=False):
        for kind, flags, stream, piece, last in reader.frames(data[start:stop]):
            joined += piece
            if last:
                found.append((kind, flags, stream, joined, True))
                joined = b""
    return found


STREAMS = st.integers(1, 2**31 - 1)
PADDING = st.integers(0, 255)


@st.composite
def any_frame(draw: st.DrawFn) -> frames.Frame:
    kind = draw(st.integers(0, 9))
    stream = draw(STREAMS)
    if kind == 0:
        pad = draw(st.none() | PADDING)
        flags = ["PADDED"] if pad is not None else draw(st.sampled_from([[], ["END_STREAM"]]))
        return frames.DataFrame(stream, draw(st.binary(max_size=300)), pad_length=pad or 0, flags=flags)
    if kind == 1:
        pad = draw(st.none() | PADDING)
        flags = ["END_HEADERS", *(["PRIORITY"] if draw(st.booleans()) else []), *(["PADDED"] if pad is not None else [])]
        return frames.HeadersFrame(stream, draw(st.binary(max_size=300)), pad_length=pad or 0, depends_on=stream - 1, flags=flags)
    return draw(st.sampled_from([
        frames.PriorityFrame(stream, depends_on=stream - 1, stream_weight=3), frames.RstStreamFrame(stream, 8),
        frames.SettingsFrame(0, {3: 100, 4: 70000}), frames.SettingsFrame(0, flags=["ACK"]), frames.PingFrame(0, b"12345678"),
        frames.GoAwayFrame(0, 7, 2, b"why"), frames.WindowUpdateFrame(stream, 5), frames.WindowUpdateFrame(0, 5),
    ]))  # fmt: skip


@given(st.lists(any_frame(), max_size=6), st.lists(st.integers(0, 3000), max_size=12))
def test_frames_of_the_package_are_read_in_any_pieces(sent: list[frames.Frame], cuts: list[int]) -> None:
    data = b"".join(frame.serialize() for frame in sent)
    found = read(data, cuts)
    assert [(kind, stream) for kind, _, stream, _, _ in found] == [(frame.type, frame.stream_id) for frame in sent]
    for (_, _, _, payload, _), frame in zip(found, sent, strict=True):
        assert payload == (frame.data if isinstance(frame, frames.DataFrame | frames.HeadersFrame) else frame.serialize_body())


@given(STREAMS, st.binary(max_size=200), st.lists(st.integers(1, 60), max_size=5), st.lists(st.integers(0, 3000), max_size=12))
def test_a_block_in_many_frames_is_one(stream: int, block: bytes, parts: list[int], cuts: list[int]) -> None:
    pieces, at = [], 0
    for n in parts:
        pieces.append(block[at : at + n])
        at += n
    pieces.append(block[at:])
    data = frames.HeadersFrame(stream, pieces[0], flags=["END_STREAM", *(["END_HEADERS"] if len(pieces) == 1 else [])]).serialize()
    for number, piece in enumerate(pieces[1:], 2):
        data += frames.ContinuationFrame(stream, piece, flags=["END_HEADERS"] if number == len(pieces) else []).serialize()
    assert read(data, cuts) == [(1, 5, stream, block, True)]


def test_unknown_frames_are_told_of_and_passed_over() -> None:
    data = raw(200, 255, 0, b"x" * 5000) + raw(16, 0, 0, b"\0\0\0\1u=1") + Http2FrameWriter.ping(b"12345678")
    assert [(kind, payload) for kind, _, _, payload, _ in read(data, [3, 9, 4000, 5011])] == [(200, b""), (16, b""), (6, b"12345678")]


def test_the_preface_is_wanted_whole() -> None:
    reader = Http2FrameReader(preface=True)
    for at in range(len(PREFACE)):
        assert reader.frames(PREFACE[at : at + 1]) == []
    assert reader.frames(Http2FrameWriter.ping(b"12345678"))[0][0] == 6
    for wrong in (b"GET / HTTP/1.1\r\n\r\n", PREFACE[:-1] + b"x"):
        with pytest.raises(ConnectionFault, match="preface"):
            Http2FrameReader(preface=True).frames(wrong)


HEADERS = raw(1, 0, 1, b"ab")
FAULTS = [
    ("longer than allowed", raw(0, 0, 1, b"x" * 16385), "FRAME_SIZE_ERROR"),
    ("DATA on stream 0", raw(0, 0, 0, b""), "PROTOCOL_ERROR"),
    ("HEADERS on stream 0", raw(1, 4, 0, b""), "PROTOCOL_ERROR"),
    ("SETTINGS on a stream", raw(4, 0, 1, b""), "PROTOCOL_ERROR"),
    ("PING on a stream", raw(6, 0, 1, b"12345678"), "PROTOCOL_ERROR"),
    ("GOAWAY on a stream", raw(7, 0, 1, b"12345678"), "PROTOCOL_ERROR"),
    ("RST_STREAM on stream 0", raw(3, 0, 0, b"1234"), "PROTOCOL_ERROR"),
    ("a short RST_STREAM", raw(3, 0, 1, b"123"), "FRAME_SIZE_ERROR"),
    ("a long WINDOW_UPDATE", raw(8, 0, 1, b"12345"), "FRAME_SIZE_ERROR"),
    ("a short PING", raw(6, 0, 0, b"1234567"), "FRAME_SIZE_ERROR"),
    ("a short GOAWAY", raw(7, 0, 0, b"1234567"), "FRAME_SIZE_ERROR"),
    ("half a setting", raw(4, 0, 0, b"12345"), "FRAME_SIZE_ERROR"),
    ("an acknowledgement with settings", raw(4, 1, 0, b"123456"), "FRAME_SIZE_ERROR"),
    ("padding as long as DATA", raw(0, 8, 1, b"\x02a"), "PROTOCOL_ERROR"),
    ("padding without its length", raw(0, 8, 1, b""), "FRAME_SIZE_ERROR"),
    ("padding longer than HEADERS", raw(1, 12, 1, b"\x02a"), "PROTOCOL_ERROR"),
    ("HEADERS without its priority", raw(1, 36, 1, b"1234"), "FRAME_SIZE_ERROR"),
    ("a stream that depends on itself", raw(1, 36, 1, b"\0\0\0\x01\x05"), "PROTOCOL_ERROR"),
    ("CONTINUATION alone", raw(9, 4, 1, b""), "PROTOCOL_ERROR"),
    ("another frame within a block", HEADERS + raw(6, 0, 0, b"12345678"), "PROTOCOL_ERROR"),
    ("an unknown frame within a block", HEADERS + raw(99, 0, 1, b""), "PROTOCOL_ERROR"),
    ("CONTINUATION of another stream", HEADERS + raw(9, 4, 3, b""), "PROTOCOL_ERROR"),
    ("CONTINUATION for ever", HEADERS + raw(9, 0, 1, b"") * 33, "ENHANCE_YOUR_CALM"),
    ("a block without an end", HEADERS + raw(9, 0, 1, b"x" * 16384) * 9, "ENHANCE_YOUR_CALM"),
    ("SETTINGS of a megabyte", raw(4, 0, 0, b"\0" * 600000), "ENHANCE_YOUR_CALM"),
]


@pytest.mark.parametrize(("data", "code"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_broken_frames_are_refused(data: bytes, code: str) -> None:
    with pytest.raises(ConnectionFault) as caught:
        read(data, [3, 10, 20], max_frame=1 << 20 if code == "ENHANCE_YOUR_CALM" else 16384)
    assert error_name(caught.value.code) == code


def test_a_wrong_priority_is_a_fault_of_its_stream_only() -> None:
    reader = Http2FrameReader()
    with pytest.raises(StreamFault) as caught:
        reader.frames(raw(2, 0, 5, b"1234"))
    assert caught.value.code == ERRORS.index("FRAME_SIZE_ERROR")
    assert reader.frames(Http2FrameWriter.ping(b"12345678"))[0][0] == 6


def parsed(data: bytes) -> frames.Frame:
    frame, length = frames.Frame.parse_frame_header(memoryview(data[:9]))
    assert length == len(data) - 9
    frame.parse_body(memoryview(data[9:]))
    return frame


def test_the_package_reads_what_is_written() -> None:
    assert parsed(Http2FrameWriter.data(5, b"abc", True)).data == b"abc"
    assert parsed(Http2FrameWriter.reset(5, 8)).error_code == 8
    assert parsed(Http2FrameWriter.window_update(5, 77)).window_increment == 77
    assert parsed(Http2FrameWriter.ping(b"12345678", True)).flags == {"ACK"}
    goaway = parsed(Http2FrameWriter.goaway(9, 2, b"why"))
    assert (goaway.last_stream_id, goaway.error_code, goaway.additional_data) == (9, 2, b"why")
    assert parsed(Http2FrameWriter.settings(((3, 100), (4, 2**31 - 1)))).settings == {3: 100, 4: 2**31 - 1}
    assert parsed(Http2FrameWriter.settings()).flags == {"ACK"}


@pytest.mark.parametrize("length", [0, 10, 11, 20, 21, 95])
def test_long_blocks_are_written_as_continuations(length: int) -> None:
    block = bytes(range(length))
    data = Http2FrameWriter.headers(7, block, True, max_frame=10)
    assert len(data) == length + 9 * max(1, -(-length // 10))
    assert read(data) == [(1, 5, 7, block, True)]
