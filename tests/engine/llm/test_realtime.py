"""Usage of realtime connections: frames cut anywhere, messages in parts, and what is no message."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.llm.realtime_rig import DELTA, done, frame

from headgate_engine.llm.realtime import counted


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
