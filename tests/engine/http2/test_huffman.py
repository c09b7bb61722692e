"""The Huffman code against RFC 7541's own codes, as another implementation has them, and against what must be refused."""

from __future__ import annotations

import pytest
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hpack.huffman_table import decode_huffman
from hypothesis import given
from hypothesis import strategies as st

from headgate_engine.http2.huffman import LENGTHS, decode, encode

ORACLE = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH)


def test_lengths_of_all_symbols() -> None:
    assert list(LENGTHS) == list(REQUEST_CODES_LENGTH)


@pytest.mark.parametrize("symbol", range(256))
def test_every_symbol_has_the_code_of_the_standard(symbol: int) -> None:
    for text in (bytes([symbol]), bytes([symbol]) * 9):
        assert encode(text) == ORACLE.encode(text)
        assert decode(encode(text)) == text


@given(st.binary(max_size=200))
def test_texts_come_back(text: bytes) -> None:
    assert encode(text) == ORACLE.encode(text)
    assert decode(encode(text)) == text


@given(st.binary(max_size=60))
def test_codes_are_read_or_refused_as_another_implementation_does(code: bytes) -> None:
    try:
        expected = decode_huffman(code)
    except Exception:
        with pytest.raises(ValueError, match="Huffman"):
            decode(code)
    else:
        assert decode(code) == expected


@pytest.mark.parametrize(
    "code",
    [b"\x00\x00", b"\xff", b"\x1f\xff", b"\xff\xff\xff\xff", b"\xff\xff\xff\xfc"],
    ids=["padding of zeros", "eight bits of padding", "eleven", "the end mark", "the end mark with padding"],
)
def test_wrong_padding_and_the_end_mark_are_refused(code: bytes) -> None:
    with pytest.raises(ValueError, match="Huffman"):
        decode(code)
