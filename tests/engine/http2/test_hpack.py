"""Header blocks: the vectors of RFC 7541 appendix C, limits, and what the encoder puts where."""

from __future__ import annotations

import pytest

from headgate_drivers.hpack import decoded, encoded, entries_of
from headgate_drivers.http2 import set_decoder_limit, set_encoder_limit
from headgate_engine.http2.faults import ConnectionFault
from headgate_engine.http2.hpack import HpackDecoder, HpackEncoder
from headgate_engine.http2.kinds import ERRORS

Pairs = list[tuple[bytes, bytes]]
COMPRESSION = ERRORS.index("COMPRESSION_ERROR")


def pairs(decoder: HpackDecoder, block: str | bytes) -> Pairs:
    found, over = decoded(decoder, bytes.fromhex(block) if isinstance(block, str) else block)
    assert not over
    return [(name, value) for name, value, _ in found]


SINGLE = [
    ("C.2.1", "400a637573746f6d2d6b65790d637573746f6d2d686561646572", (b"custom-key", b"custom-header", False), 55),
    ("C.2.2", "040c2f73616d706c652f70617468", (b":path", b"/sample/path", False), 0),
    ("C.2.3", "100870617373776f726406736563726574", (b"password", b"secret", True), 0),
    ("C.2.4", "82", (b":method", b"GET", False), 0),
]


@pytest.mark.parametrize(("name", "block", "field", "size"), SINGLE, ids=[row[0] for row in SINGLE])
def test_single_fields_of_appendix_c(name: str, block: str, field: tuple[bytes, bytes, bool], size: int) -> None:
    decoder = HpackDecoder()
    assert decoded(decoder, bytes.fromhex(block)) == ([field], False)
    assert decoder.table.size == size


GET: Pairs = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"www.example.com")]
REQUESTS: list[Pairs] = [
    GET,
    [*GET, (b"cache-control", b"no-cache")],
    [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/index.html"), (b":authority", b"www.example.com"),
     (b"custom-key", b"custom-value")],
]  # fmt: skip
REQUEST_SIZES = [57, 110, 164]
DATES = [b"Mon, 21 Oct 2013 20:13:21 GMT", b"Mon, 21 Oct 2013 20:13:22 GMT"]
LOCATION = (b"location", b"https://www.example.com")
COOKIE = (b"set-cookie", b"foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1")
RESPONSES: list[Pairs] = [
    [(b":status", b"302"), (b"cache-control", b"private"), (b"date", DATES[0]), LOCATION],
    [(b":status", b"307"), (b"cache-control", b"private"), (b"date", DATES[0]), LOCATION],
    [(b":status", b"200"), (b"cache-control", b"private"), (b"date", DATES[1]), LOCATION, (b"content-encoding", b"gzip"), COOKIE],
]
RESPONSE_SIZES = [222, 222, 215]
SEQUENCES = {
    "C.3": (4096, REQUESTS, REQUEST_SIZES, [
        "828684410f7777772e6578616d706c652e636f6d",
        "828684be58086e6f2d6361636865",
        "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
    ]),
    "C.4": (4096, REQUESTS, REQUEST_SIZES, [
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ]),
    "C.5": (256, RESPONSES, RESPONSE_SIZES, [
        "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d54"
        "6e1768747470733a2f2f7777772e6578616d706c652e636f6d",
        "4803333037c1c0bf",
        "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b425a584f5157"
        "454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
    ]),
    "C.6": (256, RESPONSES, RESPONSE_SIZES, [
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
        "4883640effc1c0bf",
        "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270f"
        "b5291f9587316065c003ed4ee5b1063d5007",
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_of_appendix_c(name: str) -> None:
    limit, lists, sizes, blocks = SEQUENCES[name]
    decoder = HpackDecoder(limit=limit)
    # The examples begin with a table of that size; the decoder wants to be told.
    start = bytes.fromhex("3fe101") if limit == 256 else b""
    for fields, size, block in zip(lists, sizes, blocks, strict=True):
        assert pairs(decoder, start + bytes.fromhex(block)) == fields
        assert decoder.table.size == size
        start = b""


@pytest.mark.parametrize(("prefix", "block"), [
    ("C.1.2", "1f9a0a"), ("five bytes", "ffffffffff00"), ("six bytes", "ff808080808000"), ("without an end", "ff80"),
    ("a string longer than the block", "00057465"), ("an endless string length", "007fffffffff7f"),
])  # fmt: skip
def test_integers_that_overflow_or_end_early_are_refused(prefix: str, block: str) -> None:
    with pytest.raises(ConnectionFault) as caught:
        decoded(HpackDecoder(), bytes.fromhex(block))
    assert caught.value.code == COMPRESSION


@pytest.mark.parametrize("block", ["80", "be", "ff00", "7f0000", "0f2f00"], ids=["zero", "62", "127", "name 63", "name 62"])
def test_indexes_without_an_entry_are_refused(block: str) -> None:
    with pytest.raises(ConnectionFault, match="index"):
        decoded(HpackDecoder(), bytes.fromhex(block))


@pytest.mark.parametrize(("block", "words"), [
    ("8220", "wrong place"), ("202020", "wrong place"), ("3fe21f", "larger than allowed"), ("3fffffffffff7f", "integer"),
])  # fmt: skip
def test_updates_of_the_table_at_wrong_places_or_too_large_are_refused(block: str, words: str) -> None:
    with pytest.raises(ConnectionFault, match=words):
        decoded(HpackDecoder(), bytes.fromhex(block))


def test_a_peer_must_make_its_table_smaller_when_told_to() -> None:
    decoder = HpackDecoder()
    set_decoder_limit(decoder, 100)
    with pytest.raises(ConnectionFault, match="smaller"):
        decoded(decoder, b"\x82")
    decoder = HpackDecoder()
    set_decoder_limit(decoder, 100)
    assert pairs(decoder, "3f4582") == [(b":method", b"GET")]
    assert decoder.table.limit == 100


def test_bad_huffman_codes_are_refused() -> None:
    with pytest.raises(ConnectionFault, match="Huffman"):
        decoded(HpackDecoder(), bytes.fromhex("0082ffff00"))


def test_a_bomb_stays_small_and_the_table_right() -> None:
    decoder = HpackDecoder(max_list=8192)
    bomb = bytes.fromhex("40016189") [:-1] + bytes.fromhex("7fa11e") + b"v" * 4000 + b"\xbe" * 20000
    found, over = decoded(decoder, bomb)
    assert over
    assert sum(len(name) + len(value) + 32 for name, value, _ in found) <= 8192
    assert pairs(decoder, b"\xbe") == [(b"a", b"v" * 4000)]


def test_more_fields_than_allowed() -> None:
    decoder = HpackDecoder(max_fields=3)
    assert len(decoded(decoder, b"\x82" * 3)[0]) == 3
    assert decoded(decoder, b"\x82" * 4)[1]


def test_a_name_of_an_entry_that_makes_room_for_its_own_copy() -> None:
    decoder = HpackDecoder(limit=64)
    assert pairs(decoder, b"\x3f\x21" + b"\x40\x01a\x0f" + b"v" * 15) == [(b"a", b"v" * 15)]
    assert pairs(decoder, b"\x7e\x10" + b"w" * 16) == [(b"a", b"w" * 16)]
    assert entries_of(decoder.table) == [(b"a", b"w" * 16)]


def test_where_the_encoder_puts_fields() -> None:
    encoder = HpackEncoder()
    fields = [(b":path", b"/some/path", False), (b"authorization", b"Bearer x", True), (b"x-kind", b"one", False),
              (b"x-request-id", b"1234", False), (b"x-big", b"v" * 3500, False), (b"cookie", b"a=b", True)]  # fmt: skip
    first = encoded(encoder, fields)
    assert entries_of(encoder.table) == [(b"x-kind", b"one")]
    again = encoded(encoder, fields)
    assert len(again) < len(first)
    assert decoded(HpackDecoder(), first)[0] == fields


def test_the_encoder_tells_of_smaller_and_larger_tables() -> None:
    encoder, decoder = HpackEncoder(), HpackDecoder()
    field = [(b"x-kind", b"one", False)]
    decoded(decoder, encoded(encoder, field))
    set_encoder_limit(encoder, 0)
    set_encoder_limit(encoder, 65536)
    block = encoded(encoder, field)
    assert block.startswith(b"\x20\x3f\xe1\x1f")
    assert decoded(decoder, block)[0] == field
    assert entries_of(decoder.table) == entries_of(encoder.table)
    assert encoded(encoder, field) == b"\xbe"
