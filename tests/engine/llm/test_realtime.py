"""Usage of realtime connections: frames cut anywhere, messages in parts, and what is no message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.llm.realtime_rig import DELTA, done, frame
from websocket_cases import CLOSED, GROUPS, MASK, Case

from headgate_engine.llm.realtime import counted
from headgate_engine.websocket.frames import CLOSE, CONTINUATION, PING, PONG, TEXT
from headgate_engine.websocket.frames import frame as made_frame


def told(stream: bytes, *cuts: int) -> tuple[int, ...] | None:
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    usage = counted(stream[a:b] for a, b in zip(places, places[1:], strict=False))
    if usage is None:
        return None
    return (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.input_audio_tokens,
            usage.output_audio_tokens, usage.provider_total_tokens)  # fmt: skip


TALK = (
    frame(DELTA) + frame(b"", 9) + frame(done(10, 20)) + frame(DELTA[:50], final=False) + frame(b"ping", 9)
    + frame(DELTA[50:], 0) + frame(done(1, 2)[:30], final=False) + frame(done(1, 2)[30:], 0) + frame(b"\1" * 70_000, 2)
)  # fmt: skip


@given(st.lists(st.integers(0, 100_000), max_size=12))
def test_answers_add_up_however_they_are_cut(cuts: list[int]) -> None:
    assert told(TALK, *cuts) == (11, 22, 6, 4, 10, 33)


def test_byte_by_byte() -> None:
    assert told(TALK[:2000], *range(2000)) == (11, 22, 6, 4, 10, 33)


def test_what_is_too_long_is_passed_over_and_the_rest_is_read() -> None:
    assert told(frame(done(5, 5, "x" * 3_000_000)) + frame(done(1, 2))) == (1, 2, 3, 2, 5, 3)


def test_what_cannot_be_read_counts_nothing() -> None:
    assert told(frame(DELTA)) is None
    assert told(b"\xc1" + frame(done(1, 2))[1:]) is None, "compressed"
    assert told(b"\x81\xfe\x00\x01" + b"m" * 20) is None, "masked"
    assert told(frame(b'{"type":"response.done","response":{"usage":')) is None
    assert told(frame(done(1, 2))[:-1]) is None


def test_other_tunnels_are_not_read() -> None:
    assert counted([frame(done(1, 2))], "passthrough") is None


@given(st.binary(max_size=300), st.integers(0, 300))
def test_any_bytes_are_endured(noise: bytes, cut: int) -> None:
    counted([noise[:cut], noise[cut:]])


# -- the published cases of Autobahn, as frames of a server --------------------------------------------------------------
PLAIN = [(group, case) for group, cases in GROUPS.items() for case in cases if not case.offer]
DONE = done(3, 5)


def sizes_of(data: bytes) -> tuple[int, ...]:
    return (1, 2, 3, 5, len(data)) if len(data) < 1000 else (997, 65_536, len(data))


def cut_into(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def without_masks(case: Case) -> bytes | None:
    """The frames as a server sends them, without the close; None where there are others than whole ones."""
    found = b""
    for one in case.frames:
        size = one[1] & 0x7F
        at = 2 + {126: 2, 127: 8}.get(size, 0)
        if one[at : at + 4] != MASK:
            return None
        # Frames are of one mask, and payloads are all that it hides.
        if len(one) >= 100_000:
            return None
        hidden = one[at + 4 :]
        mask = (MASK * (len(hidden) // 4 + 1))[: len(hidden)]
        # As numbers: this runs when tests are collected, in each of their processes.
        payload = (int.from_bytes(hidden) ^ int.from_bytes(mask)).to_bytes(len(hidden))
        made = bytearray(made_frame(payload, TEXT))
        made[0] = one[0]
        found += made
    return found


TAPPED = [(group, case, data) for group, case in PLAIN if case.heard[-1] == CLOSED and not case.closes and (data := without_masks(case)) is not None]


def part(payload: bytes, opcode: int, *, final: bool) -> bytes:
    made = bytearray(made_frame(payload, opcode))
    made[0] = made[0] if final else made[0] & 0x7F
    return bytes(made)


def test_most_cases_are_tapped() -> None:
    assert len(TAPPED) > 60
    assert {group for group, _, _ in TAPPED} == {group for group, _ in PLAIN} - {"3 reserved bits", "4 opcodes", "7 close handling"}


@pytest.mark.parametrize("row", TAPPED, ids=lambda row: row[1].name[:60])
def test_the_tap_counts_before_and_behind_each_case(row: tuple[str, Case, bytes]) -> None:
    _, _, data = row
    half = len(DONE) // 2
    # The second comes in fragments, with a ping, a pong and an empty fragment between them.
    torn = [part(DONE[:half], TEXT, final=False), made_frame(b"ping within", PING), part(b"", CONTINUATION, final=False), made_frame(b"x" * 125, PONG),
            part(DONE[half:], CONTINUATION, final=True)]  # fmt: skip
    stream = made_frame(DONE, TEXT) + data + b"".join(torn) + made_frame(b"\x03\xe8", CLOSE)
    for size in sizes_of(stream):
        usage = counted(cut_into(stream, size))
        assert (usage.input_tokens, usage.output_tokens) == (6, 10), size


@pytest.mark.parametrize("row", [row for row in PLAIN if row[0].startswith("3")], ids=lambda row: row[1].name[:60])
def test_the_tap_is_blind_behind_an_extension(row: tuple[str, Case]) -> None:
    """What an extension does to a message only its ends know: nothing is counted, and nothing is guessed."""
    _, case = row
    data = without_masks(case)
    assert data is not None
    usage = counted([made_frame(DONE, TEXT) + data + made_frame(DONE, TEXT)])
    assert usage.input_tokens == 3
