"""Values of log lines: nothing a peer sends changes what a reader sees around them."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate_drivers.log import text_value
from headgate_engine.log.text import MAX_VALUE, json_value

# Bytes near the borders of UTF-8 and of what is escaped.
HARD = st.lists(
    st.sampled_from(
        [
            *(bytes([byte]) for byte in (0, 9, 10, 13, 27, 32, 34, 61, 92, 127, 128, 0xC0, 0xC2, 0xE0, 0xED, 0xF0)),
            *(bytes([byte]) for byte in (0xF4, 0xF5, 0xA0, 0x9F, 0x90, 0x8F, 0xBF)),
            *(char.encode() for char in "\x80\x9b\u2028\u202e\u2066\ufeff€é\U0001f600\U0010ffff\ue000"),
        ]
    )
).map(b"".join)
VALUES = st.one_of(st.binary(max_size=60), HARD, st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))

TEXT_CASES = [
    (b"plain", b"plain"),
    (b"/a?b=c&d=[1]", b"/a?b=c&d=[1]"),
    (b"", b'""'),
    (b"a b", b'"a b"'),
    (b'a"b', rb'"a\"b"'),
    (rb"a\b", rb'"a\\b"'),
    (b"a\nb", rb'"a\x0ab"'),
    (b"a\r\x00\x1b\x7f", rb'"a\x0d\x00\x1b\x7f"'),
    ("é€".encode(), '"é€"'.encode()),
    (b"\xff\xc3", rb'"\xff\xc3"'),
    (b"\xc0\x8a", rb'"\xc0\x8a"'),
    (b"\xed\xa0\x80", rb'"\xed\xa0\x80"'),
    ("\x9b".encode(), rb'"\xc2\x9b"'),
    ("\u2028".encode(), rb'"\xe2\x80\xa8"'),
    ("\u202e".encode(), rb'"\xe2\x80\xae"'),
    (rb"\x0a", rb'"\\x0a"'),
]


@pytest.mark.parametrize(("value", "expected"), TEXT_CASES)
def test_a_text_value_is_quoted_only_when_it_has_to_be(value: bytes, expected: bytes) -> None:
    assert text_value(value) == expected


JSON_CASES = [
    (b"", b'""'),
    (b"a b", b'"a b"'),
    (b'a"\\', rb'"a\"\\"'),
    (b"\n\x00\x7f", rb'"\u000a\u0000\u007f"'),
    ("é".encode(), '"é"'.encode()),
    (b"a\xffb", rb'"a\ufffdb"'),
    ("\u2028".encode(), rb'"\u2028"'),
]


@pytest.mark.parametrize(("value", "expected"), JSON_CASES)
def test_a_json_value_is_a_json_string(value: bytes, expected: bytes) -> None:
    assert json_value(value) == expected


@given(VALUES)
@example(b"\xf0\x9f\x98")
@example(b"\xe0\x80\x80")
@example(b"\xf4\x90\x80\x80")
def test_json_gives_the_value_back_and_replaces_what_is_no_utf8(value: bytes) -> None:
    assert json.loads(json_value(value)) == value.decode("utf-8", "replace")


def unquoted(text: bytes) -> bytes:
    """Return the value of a text value: the inverse, written apart from the code."""
    if not text.startswith(b'"'):
        return text
    assert text.endswith(b'"')
    inner, out, at = text[1:-1], bytearray(), 0
    while at < len(inner):
        if inner[at : at + 2] == rb"\x":
            out.append(int(inner[at + 2 : at + 4], 16))
            at += 4
        elif inner[at : at + 1] == b"\\":
            out += inner[at + 1 : at + 2]
            at += 2
        else:
            assert inner[at : at + 1] != b'"'
            out.append(inner[at])
            at += 1
    return bytes(out)


@given(VALUES)
def test_text_gives_the_value_back(value: bytes) -> None:
    assert unquoted(text_value(value)) == value


@given(VALUES)
def test_no_control_character_or_direction_mark_is_left(value: bytes) -> None:
    for shown in (text_value(value), json_value(value)):
        for char in shown.decode("utf-8"):
            assert unicodedata.category(char) not in ("Cc", "Zl", "Zp", "Cs")
            assert unicodedata.bidirectional(char) not in (
                "LRE",
                "RLE",
                "LRO",
                "RLO",
                "PDF",
                "LRI",
                "RLI",
                "FSI",
                "PDI",
            )


@given(VALUES)
def test_a_bare_text_value_has_no_space_and_no_quote(value: bytes) -> None:
    shown = text_value(value)
    assert (shown[:1] == b'"') == (not value or any(c <= 32 or c >= 127 or c in b'"\\' for c in value))


@pytest.mark.parametrize("unit", [b"a", "é".encode(), "€".encode(), "\U0001f600".encode(), b"\xff", b" ", b"\x80"])
@pytest.mark.parametrize("shift", range(4))
def test_a_long_value_is_cut_between_characters(unit: bytes, shift: int) -> None:
    value = b"x" * shift + unit * (MAX_VALUE + 1)
    shown = json.loads(json_value(value))
    whole = value.decode("utf-8", "replace")
    assert shown.endswith("...")
    assert whole.startswith(shown[:-3])
    assert MAX_VALUE - 4 <= sum(len(unit) if ord(char) > 127 else 1 for char in shown[:-3]) <= MAX_VALUE
    cut = unquoted(text_value(value))
    assert cut.endswith(b"...")
    assert value.startswith(cut[:-3])


def test_a_value_of_the_greatest_length_is_whole() -> None:
    assert text_value(b"a" * MAX_VALUE) == b"a" * MAX_VALUE
    assert text_value(b"a" * (MAX_VALUE + 1)) == b"a" * MAX_VALUE + b"..."


@pytest.mark.parametrize("size", [*range(1, 19), 33])
def test_no_place_in_a_value_hides_a_byte_that_needs_quotes(size: int) -> None:
    for odd in range(256):
        bare = 32 < odd < 127 and odd not in b'"\\'
        for place in range(size):
            value = b"v" * place + bytes([odd]) + b"v" * (size - place - 1)
            assert (text_value(value) == value) is bare, (odd, place)
