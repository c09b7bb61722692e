"""Content codings: what comes out is what went in, however it is cut, and never more of it than was asked for."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable

import brotli
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from headgate_engine.wire.coding import CODINGS, CodingError, DecodedTooLong, Decoder, decode, name_of


def raw_deflate(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(text) + packer.flush()


CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstd.compress,
}  # fmt: skip
TEXT = b'{"model":"m","messages":[]}' * 50 + os.urandom(300)


def pieces(coding: str, raw: bytes, size: int, limit: int) -> tuple[list[bytes], bool]:
    decoder = Decoder(coding)
    found = [one for at in range(0, len(raw), size) for one in decoder.decode(raw[at : at + size], limit)]
    return found, decoder.done


@pytest.mark.parametrize("size", [1, 3, 7, 100_000])
@pytest.mark.parametrize("coding", CODINGS)
def test_any_cut_gives_the_same(coding: str, size: int) -> None:
    found, done = pieces(coding, CODERS[coding](TEXT), size, 64)
    assert (b"".join(found), done) == (TEXT, True)


@given(text=st.binary(max_size=4000), coding=st.sampled_from(CODINGS), size=st.integers(1, 500), limit=st.integers(1, 900))
def test_round_trips(text: bytes, coding: str, size: int, limit: int) -> None:
    found, done = pieces(coding, CODERS[coding](text), size, limit)
    assert (b"".join(found), done) == (text, True)
    assert decode(coding, CODERS[coding](text), 4000) == text


@given(raw=st.binary(max_size=300), coding=st.sampled_from(CODINGS))
def test_nothing_but_a_coding_error_is_raised(raw: bytes, coding: str) -> None:
    try:
        decode(coding, raw, 10_000)
    except CodingError:
        pass


@pytest.mark.parametrize("coding", CODINGS)
def test_a_step_is_bounded_whatever_a_few_bytes_stand_for(coding: str) -> None:
    bomb = CODERS[coding](bytes(20_000_000))
    decoder = Decoder(coding)
    longest = max(len(one) for one in decoder.decode(bomb[:2000], 4096))
    # brotli gives whole blocks of its own.
    assert longest <= (4096 if coding != "br" else 1 << 17)
    with pytest.raises(DecodedTooLong):
        decode(coding, bomb, 100_000)


@pytest.mark.parametrize("coding", CODINGS)
def test_what_ends_early_is_no_body(coding: str) -> None:
    with pytest.raises(CodingError):
        decode(coding, CODERS[coding](TEXT)[:-5], 10_000)
    with pytest.raises(CodingError):
        decode(coding, b"", 10_000)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_several_members_are_one_body(coding: str) -> None:
    raw = CODERS[coding](b"one") + CODERS[coding](b"two")
    assert decode(coding, raw, 100) == b"onetwo"
    for size in (1, len(raw) // 2):
        assert b"".join(pieces(coding, raw, size, 100)[0]) == b"onetwo"
    assert decode(coding, CODERS[coding](b"one") + b"\0\0trailer", 100) == b"one"


def test_deflate_without_its_head_is_read() -> None:
    assert decode("deflate", raw_deflate(TEXT), 10_000) == TEXT


def test_a_window_beyond_the_content_coding_s_is_refused() -> None:
    wide = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 24, zstd.CompressionParameter.checksum_flag: 1})
    raw = wide.compress(os.urandom(1 << 10) * (1 << 15)) + wide.flush()
    with pytest.raises(CodingError):
        decode("zstd", raw, 1 << 26)


@pytest.mark.parametrize(
    ("value", "name"),
    [(None, None), ("", None), ("Identity", None), ("GZIP", "gzip"), ("x-gzip", "gzip"), (" br ", "br"), ("zstd", "zstd"),
     ("gzip, br", ""), ("compress", "")],
)  # fmt: skip
def test_names(value: str | None, name: str | None) -> None:
    assert name_of(value) == name
