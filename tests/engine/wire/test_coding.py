"""Content codings: what comes out is what went in, however it is cut, and never more of it than was asked for."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Callable
from functools import partial

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_engine.wire.coding import (
    CODINGS,
    FIRST_PIECE,
    MAX_MEMBERS,
    CodingError,
    DecodedTooLong,
    Decoder,
    decode,
    name_of,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def raw_deflate(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(text) + packer.flush()


CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "deflate": zlib.compress, "br": partial(brotli.compress, quality=5), "zstd": zstd.compress,
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


EMPTY = {"gzip": gzip.compress(b"", mtime=0), "zstd": zstd.compress(b"")}
# Two megabytes of empty members held a worker for 24 s with gzip, 1.4 MB for 104 s with zstd.
MANY = {"gzip": 100_000, "zstd": 150_000}


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_body_of_many_empty_members_is_refused_after_a_few(coding: str) -> None:
    raw = EMPTY[coding] * MANY[coding]
    decoder = Decoder(coding)
    with pytest.raises(CodingError, match="too many members"):
        decoder.decode(raw, 65536)
    assert decoder.members == MAX_MEMBERS + 1
    assert decoder.given <= 65536 + MAX_MEMBERS * FIRST_PIECE
    with pytest.raises(CodingError):
        decode(coding, raw, 1 << 21)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_members_cost_what_they_are_long_and_no_more(coding: str) -> None:
    texts = [b"%d" % at * 100 for at in range(5000)]
    raw = b"".join(map(CODERS[coding], texts))
    decoder = Decoder(coding)
    assert b"".join(decoder.decode(raw, 65536)) == b"".join(texts)
    assert decoder.members == len(texts)
    # What a library gives back is given to it again, but never more than a piece of each member.
    assert decoder.given <= len(raw) + 65536 + len(texts) * FIRST_PIECE


def test_a_long_member_is_given_to_the_library_once() -> None:
    text = os.urandom(1 << 20) + bytes(1 << 22)
    for coding in ("gzip", "zstd", "br", "deflate"):
        raw = CODERS[coding](text)
        decoder = Decoder(coding)
        assert b"".join(decoder.decode(raw, 65536)) == text
        # zlib gives back what the limit stopped, at most a piece for each step of output.
        assert decoder.given <= 3 * len(raw), coding


def by_library(coding: str, raw: bytes) -> bytes | None:
    """What gzip and zstandard themselves make of the bytes, None for a fault."""
    try:
        return gzip.decompress(raw) if coding == "gzip" else zstd.decompress(raw)
    except (OSError, EOFError, zlib.error, zstd.ZstdError):
        return None


@given(
    texts=st.lists(st.binary(max_size=3000), max_size=8),
    coding=st.sampled_from(["gzip", "zstd"]),
    cut=st.integers(0, 40),
    size=st.integers(1, 2000),
)
def test_members_decode_as_the_libraries_decode_them(texts: list[bytes], coding: str, cut: int, size: int) -> None:
    raw = b"".join(map(CODERS[coding], texts))
    raw = raw[: len(raw) - cut] if cut < 30 else raw
    wanted = by_library(coding, raw) if raw else None
    try:
        found = decode(coding, raw, 1 << 20)
    except CodingError:
        found = None
    assert found == wanted
    if wanted is not None:
        assert pieces(coding, raw, size, 700) == ([*pieces(coding, raw, size, 700)[0]], True)
        assert b"".join(pieces(coding, raw, size, 700)[0]) == wanted
