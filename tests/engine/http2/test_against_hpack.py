"""Header blocks beside the hpack package: what one writes the other reads, and both refuse the same."""

from __future__ import annotations

import effort
import hpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headgate_drivers.hpack import decoded, encoded, entries_of
from headgate_drivers.http2 import set_decoder_limit, set_encoder_limit
from headgate_engine.errors import RemoteProtocolError
from headgate_engine.http2.hpack import HpackDecoder, HpackEncoder
from headgate_engine.http2.table import STATIC

Field = tuple[bytes, bytes, bool]
NAMES = st.one_of(
    st.sampled_from([name for name, _ in STATIC]), st.text("abcdefghijklmnop-", min_size=1, max_size=20).map(str.encode)
)
VALUES = st.one_of(st.sampled_from([value for _, value in STATIC]), st.binary(max_size=60), st.just(b"v" * 900))
LISTS = st.lists(st.tuples(NAMES, VALUES, st.booleans()), max_size=12)
SIZES = st.sampled_from([None, 0, 40, 100, 500, 4096, 70000])


def theirs(decoder: hpack.Decoder, block: bytes) -> list[Field]:
    return [(bytes(f[0]), bytes(f[1]), not f.indexable) for f in decoder.decode(block, raw=True)]


@settings(deadline=None)
@given(st.lists(st.tuples(LISTS, SIZES), max_size=8))
def test_the_package_reads_what_the_encoder_writes(blocks: list[tuple[list[Field], int | None]]) -> None:
    encoder, decoder, ours = HpackEncoder(), hpack.Decoder(1 << 24), HpackDecoder(1 << 24, 1000)
    for fields, size in blocks:
        if size is not None:
            set_encoder_limit(encoder, size)
            decoder.max_allowed_table_size = size
            set_decoder_limit(ours, size)
        block = encoded(encoder, fields)
        assert theirs(decoder, block) == fields
        assert decoded(ours, block) == (fields, False)
        assert entries_of(encoder.table) == entries_of(ours.table) == list(decoder.header_table.dynamic_entries)


@settings(deadline=None)
@given(st.lists(st.tuples(LISTS, st.booleans(), SIZES), max_size=8))
def test_the_decoder_reads_what_the_package_writes(blocks: list[tuple[list[Field], bool, int | None]]) -> None:
    encoder, decoder = hpack.Encoder(), HpackDecoder(1 << 24, 1000, limit=70000)
    for fields, huffman, size in blocks:
        if size is not None:
            encoder.header_table_size = size
        block = encoder.encode(fields, huffman=huffman)
        found, over = decoded(decoder, block)
        # The package puts fields that are never indexed as an index where a table has them.
        assert ([field[:2] for field in found], over) == ([field[:2] for field in fields], False)
        assert entries_of(decoder.table) == list(encoder.header_table.dynamic_entries)


def alike(blocks: list[bytes]) -> None:
    """Both read the blocks, or both refuse one."""
    decoder, ours = hpack.Decoder(1 << 24), HpackDecoder(1 << 24, 1000)
    for block in blocks:
        try:
            expected = theirs(decoder, block)
        except hpack.HPACKError:
            with pytest.raises(RemoteProtocolError):
                decoded(ours, block)
            return
        reason = ""
        try:
            assert decoded(ours, block) == (expected, False)
        except RemoteProtocolError as error:
            reason = error.reason
        if reason:
            # Only what the package is lenient in: integers of any length, and any number of updates.
            assert "too long" in reason or "wrong place" in reason
            return


@settings(deadline=None, max_examples=effort.examples(400))
@given(st.lists(st.binary(max_size=40), max_size=4))
@example([b"\x3f\xff\xff\xff\xff\xff\xff\x00"])
@example([b"\x40\x00\x00", b"\xbe"])
def test_random_blocks_are_read_or_refused_alike(blocks: list[bytes]) -> None:
    alike(blocks)


@settings(deadline=None)
@given(LISTS, st.data())
def test_blocks_with_a_spoilt_byte_crash_nothing(fields: list[Field], data: st.DataObject) -> None:
    block = bytearray(hpack.Encoder().encode(fields))
    if block:
        block[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.integers(0, 255))
    alike([bytes(block)])
