"""Frames of WebSockets: any cut of the bytes gives the same messages, and what goes on is what came."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websocket_cases import GROUPS, Case
from wsproto.frame_protocol import FrameProtocol, Opcode

from headgate_engine.websocket.frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    FrameError,
    FrameReader,
    frame,
)

MASK = b"\x01\x02\x03\x04"


def part(payload: bytes, opcode: int, *, final: bool, mask: bytes | None = None) -> bytes:
    """One frame of a message in pieces."""
    whole = bytearray(frame(payload, opcode, mask))
    if not final:
        whole[0] &= 0x7F
    return bytes(whole)


@given(
    payloads=st.lists(st.binary(max_size=300) | st.integers(120, 70_000).map(lambda n: b"x" * n), min_size=1, max_size=4),
    masked=st.booleans(),
    cuts=st.lists(st.integers(0, 100_000), max_size=6),
)
def test_any_cut_gives_the_same_messages(payloads: list[bytes], masked: bool, cuts: list[int]) -> None:
    raw = [frame(payload, BINARY, MASK if masked else None) for payload in payloads]
    stream = b"".join(raw)
    reader = FrameReader(masked, 1 << 20)
    places = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    found = [one for start, stop in zip(places, places[1:], strict=False) for one in reader.feed(stream[start:stop])]
    assert found == [(BINARY, payload, one) for payload, one in zip(payloads, raw, strict=True)]


def test_frames_are_those_of_another_implementation() -> None:
    for payload in (b"", b"hi", b"x" * 125, b"x" * 126, b"x" * 65_536):
        sender = FrameProtocol(client=False, extensions=[])
        assert frame(payload, TEXT) == bytes(sender.send_data(payload.decode(), fin=True))
        receiver = FrameProtocol(client=False, extensions=[])
        receiver.receive_bytes(frame(payload, BINARY, MASK))
        got = list(receiver.received_frames())
        assert b"".join(bytes(one.payload) for one in got) == payload
        assert got[0].opcode is Opcode.BINARY


def test_a_message_in_pieces_with_a_ping_between() -> None:
    reader = FrameReader(True, 100)
    pieces = [
        part(b"hel", TEXT, final=False, mask=MASK),
        frame(b"!", PING, MASK),
        part(b"lo", CONTINUATION, final=True, mask=MASK),
        frame(b"", CLOSE, MASK),
    ]
    found = [one for piece in pieces for one in reader.feed(piece)]
    assert found == [
        (PING, b"!", pieces[1]),
        (TEXT, b"hello", pieces[0] + pieces[2]),
        (CLOSE, b"", pieces[3]),
    ]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (frame(b"x"), "mask"),
        (bytes([0xC1]) + frame(b"x", TEXT, MASK)[1:], "extension"),
        (part(b"x", PING, final=False, mask=MASK), "control"),
        (bytes([0x89, 0xFE, 0, 200]) + MASK + b"x" * 200, "control"),
        (frame(b"x", CONTINUATION, MASK), "within"),
        (part(b"x", TEXT, final=False, mask=MASK) + frame(b"y", TEXT, MASK), "within"),
        (frame(b"x" * 101, TEXT, MASK), "too long"),
        (part(b"x" * 60, TEXT, final=False, mask=MASK) + frame(b"y" * 60, CONTINUATION, MASK), "too long"),
        (b"\x81\xff" + b"\xff" * 8, "too long"),
    ],
)
def test_what_is_no_conversation_ends_it(data: bytes, why: str) -> None:
    with pytest.raises(FrameError, match=why):
        FrameReader(True, 100).feed(data)


def test_a_mask_has_four_bytes() -> None:
    with pytest.raises(ValueError, match="four"):
        frame(b"x", TEXT, b"abc")


@pytest.mark.parametrize("masked", [True, False])
def test_tiny_frames_are_read_without_moving_what_is_behind_them(masked: bool) -> None:
    """7.6 MB of such frames held a worker for 10 s: each one moved all that had come behind it."""
    tiny = frame(b"", TEXT, MASK if masked else None)
    reader = FrameReader(masked, 100)
    stream = tiny * 20_000
    found = 0
    for at in range(0, len(stream), 65_535):
        found += len(reader.feed(stream[at : at + 65_535]))
    assert found == 20_000
    # Of each read only the beginning of the next frame stays.
    assert reader.moved < len(tiny) * (len(stream) // 65_535 + 1)


@pytest.mark.parametrize("opcode", [3, 4, 5, 6, 7, 11, 12, 13, 14, 15])
def test_reserved_opcodes_are_refused(opcode: int) -> None:
    """RFC 6455 section 5.2."""
    with pytest.raises(FrameError, match="reserved"):
        FrameReader(True, 100).feed(frame(b"x", opcode, MASK))


# -- the published cases of Autobahn -----------------------------------------------------------------------------------
PLAIN = [(group, case) for group, cases in GROUPS.items() for case in cases if not case.offer]
# What a proxy leaves to the ends: whether a text is UTF-8, and the codes and reasons of a close.
LEFT_ALONE = ("6 UTF-8", "7 close handling")


def name_of(row: tuple[str, Case]) -> str:
    return row[1].name[:60]


def sizes_of(data: bytes) -> tuple[int, ...]:
    return (1, 2, 3, 5, len(data)) if len(data) < 1000 else (997, 65_536, len(data))


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("row", PLAIN, ids=name_of)
def test_the_reader_of_guards_reads_what_wsproto_does(row: tuple[str, Case]) -> None:
    group, case = row
    fails = case.code == 1002 and (group not in LEFT_ALONE or "too long" in case.name)
    for size in sizes_of(case.data):
        reader, found, raw, failed = FrameReader(True, 1 << 25), [], b"", False
        try:
            for piece in cut(case.data, size):
                for opcode, payload, original in reader.feed(piece):
                    found.append((opcode, payload))
                    raw += original
        except FrameError:
            failed = True
        assert failed is fails, (case.name, size)
        if failed or group in LEFT_ALONE:
            continue
        said = [(TEXT, one.encode()) if isinstance(one, str) else (BINARY, one) for kind, one in case.heard if kind in ("text", "bytes")]
        assert [one for one in found if one[0] in (TEXT, BINARY)] == said, (case.name, size)
        assert [payload for opcode, payload in found if opcode == PING] == [one for kind, one in case.heard if kind == "pong"]
        # No byte is lost or made; a control frame goes on in front of the message that it came in.
        assert len(raw) == len(case.data)
        assert raw == case.data or {opcode for opcode, _ in found} & {PING, PONG}
