"""Amazon event stream: framing, checksums, limits, and the vendor's own decoder as an oracle."""

from __future__ import annotations

import random
import struct
from binascii import crc32

import pytest
from botocore.eventstream import EventStreamBuffer

from headgate_drivers.llm import rest_of_frames
from headgate_engine.llm.eventstream import DEFAULT_MAX_FRAME, EventStreamDecoder, EventStreamError, encode_frame

FRAMES = [
    encode_frame({":message-type": "event", ":event-type": "messageStart"}, b'{"role":"assistant"}'),
    encode_frame({":message-type": "event", ":event-type": "contentBlockDelta"}, '{"text":"☃"}'.encode()),
    encode_frame({":message-type": "event", ":event-type": "empty"}, b""),
    encode_frame({":message-type": "exception", ":exception-type": "throttlingException"}, b'{"message":"slow"}'),
    encode_frame({":message-type": "error", ":error-code": "internal", ":error-message": "oh"}, b""),
]
WHOLE = b"".join(FRAMES)


def oracle(data: bytes) -> list[tuple[dict[str, object], bytes]]:
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    return [(message.headers, message.payload) for message in buffer]


def raw_frame(headers: bytes, payload: bytes) -> bytes:
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    found = prelude + struct.pack(">I", crc32(prelude)) + headers + payload
    return found + struct.pack(">I", crc32(found))


def test_the_vendors_decoder_reads_what_is_encoded() -> None:
    found = oracle(WHOLE)
    assert [headers[":message-type"] for headers, _ in found] == ["event", "event", "event", "exception", "error"]
    assert found[1][1] == '{"text":"☃"}'.encode()


def test_frames_are_the_same_for_the_vendors_decoder_and_this_one() -> None:
    ours = EventStreamDecoder().decode(WHOLE)
    for frame, (headers, payload) in zip(ours, oracle(WHOLE), strict=True):
        assert frame.kind == headers[":message-type"]
        name = {"event": ":event-type", "exception": ":exception-type", "error": ":error-code"}[frame.kind]
        assert frame.event == headers[name]
        if frame.kind != "error":
            assert frame.data == payload
    assert ours[-1].data == b'{"message": "oh"}'


def test_every_cut_gives_the_same_frames() -> None:
    expected = EventStreamDecoder().decode(WHOLE)
    for at in range(len(WHOLE) + 1):
        decoder = EventStreamDecoder()
        assert decoder.decode(WHOLE[:at]) + decoder.decode(WHOLE[at:]) == expected
        assert rest_of_frames(decoder) == b""
    decoder = EventStreamDecoder()
    assert [frame for byte in WHOLE for frame in decoder.decode(bytes([byte]))] == expected


def test_a_stream_that_ends_inside_of_a_frame_has_a_rest() -> None:
    decoder = EventStreamDecoder()
    decoder.decode(WHOLE[:-1])
    assert rest_of_frames(decoder) == FRAMES[-1][:-1]


@pytest.mark.parametrize("at", range(len(FRAMES[0])))
def test_a_flipped_bit_anywhere_is_found(at: int) -> None:
    broken = bytearray(FRAMES[0])
    broken[at] ^= 0x10
    decoder = EventStreamDecoder()
    with pytest.raises(EventStreamError):
        decoder.decode(bytes(broken))
    with pytest.raises(EventStreamError):
        decoder.decode(FRAMES[0])


def test_checksums_are_those_of_zlib_at_every_length() -> None:
    source = random.Random(3)
    for size in range(64):
        payload = source.randbytes(size)
        assert [frame.data for frame in EventStreamDecoder().decode(raw_frame(b"", payload))] == [payload]


def test_a_header_that_comes_twice_counts_as_it_came_last() -> None:
    headers = b"\x0b:event-type\x07\x00\x01a\x0b:event-type\x07\x00\x01b\x0d:message-type\x07\x00\x03odd"
    assert EventStreamDecoder().decode(raw_frame(headers, b"{}")) == [("b", b"{}", "odd")]


def test_frames_in_front_of_a_broken_one_are_told_first() -> None:
    decoder = EventStreamDecoder()
    assert len(decoder.decode(FRAMES[0] + b"\xff" * 16)) == 1
    with pytest.raises(EventStreamError):
        decoder.decode(b"")


def test_a_frame_over_the_limit_is_refused_by_its_length_alone() -> None:
    prelude = struct.pack(">II", 1 << 31, 0)
    with pytest.raises(EventStreamError, match="too long"):
        EventStreamDecoder().decode(prelude + struct.pack(">I", crc32(prelude)))
    small = EventStreamDecoder(max_frame=len(FRAMES[0]) - 1)
    with pytest.raises(EventStreamError):
        small.decode(FRAMES[0])
    assert len(EventStreamDecoder(max_frame=len(FRAMES[0])).decode(FRAMES[0])) == 1
    assert EventStreamDecoder().max_frame == DEFAULT_MAX_FRAME
    with pytest.raises(ValueError, match="16"):
        EventStreamDecoder(max_frame=15)


@pytest.mark.parametrize(
    "headers",
    [b"\x05:a", b"\x01a\x07\x00\x09x", b"\x01a", b"\x01a\x0a", b"\x01a\x04\x00", b"\x01a\x06\x00"],
    ids=["name", "value", "no type", "unknown type", "short number", "short length"],
)
def test_headers_that_leave_their_frame_are_refused(headers: bytes) -> None:
    with pytest.raises(EventStreamError):
        EventStreamDecoder().decode(raw_frame(headers, b""))


def test_headers_of_all_types_are_skipped_over() -> None:
    headers = b"".join([
        b"\x01a\x00", b"\x01b\x01", b"\x01c\x02\x01", b"\x01d\x03\x00\x01", b"\x01e\x04\x00\x00\x00\x01",
        b"\x01f\x05" + b"\0" * 8, b"\x01g\x06\x00\x02xy", b"\x01h\x08" + b"\0" * 8, b"\x01i\x09" + b"\0" * 16,
        b"\x0b:event-type\x07\x00\x04last",
    ])  # fmt: skip
    frame = raw_frame(headers, b"p")
    assert EventStreamDecoder().decode(frame) == [("last", b"p", "event")]
    assert oracle(frame)[0][0][":event-type"] == "last"


def test_lengths_that_do_not_fit_are_refused() -> None:
    for total, inner in ((15, 0), (16, 1), (40, 30)):
        prelude = struct.pack(">II", total, inner)
        with pytest.raises(EventStreamError):
            EventStreamDecoder().decode(prelude + struct.pack(">I", crc32(prelude)) + b"\0" * 40)


def test_broken_streams_raise_nothing_else() -> None:
    source = random.Random(7)
    for _ in range(3000):
        data = bytearray(WHOLE)
        for _ in range(source.randint(1, 4)):
            data[source.randrange(len(data))] = source.randrange(256)
        decoder = EventStreamDecoder()
        try:
            decoder.decode(bytes(data))
            decoder.decode(b"")
        except EventStreamError:
            continue


def test_headers_that_cannot_be_written_are_refused() -> None:
    for headers in ({"": "x"}, {"n" * 256: "x"}, {"n": "x" * 32768}):
        with pytest.raises(ValueError, match="bytes"):
            encode_frame(headers, b"")
