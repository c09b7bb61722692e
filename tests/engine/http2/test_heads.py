"""Heads of HTTP/2: what RFC 9113 section 8.2 and 8.3 forbid is refused, and the rest is what a request sees over HTTP/1.1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.hpack import decoded
from headgate_drivers.http2 import block_of, request_of, response_of, trailers_of
from headgate_engine.context.field_names import FORBIDDEN_TRAILERS
from headgate_engine.context.headers import MessageHead
from headgate_engine.errors import LocalProtocolError
from headgate_engine.http2.faults import StreamFault
from headgate_engine.http2.hpack import HpackDecoder, HpackEncoder
from headgate_engine.http2.kinds import ERRORS

Pairs = list[tuple[bytes, bytes]]
GET: Pairs = [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/a?b=c"), (b":authority", b"a.test:8443")]
CONNECT: Pairs = [(b":method", b"CONNECT"), (b":authority", b"a.test:443")]
SOCKET: Pairs = [(b":method", b"CONNECT"), (b":protocol", b"websocket"), *GET[1:]]


def without(name: bytes, pairs: Pairs = GET) -> Pairs:
    return [pair for pair in pairs if pair[0] != name]


def instead(name: bytes, value: bytes, pairs: Pairs = GET) -> Pairs:
    return [(known, value if known == name else old) for known, old in pairs]


def test_a_request_is_what_it_is_over_the_older_version() -> None:
    head = request_of([*GET, (b"accept", b"*/*"), (b"x-one", b"1"), (b"content-length", b"12"), (b"te", b"trailers")])
    assert (head.method, head.target, head.path, head.query, head.authority) == ("GET", "/a?b=c", "/a", "b=c", "a.test:8443")
    assert head.items() == [("accept", "*/*"), ("x-one", "1")]
    assert (head.content_length, head.version, head.status) == (12, "2", 0)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
def test_pseudo_header_fields_come_in_any_order(order: list[int]) -> None:
    assert request_of([GET[at] for at in order]).target == "/a?b=c"


def test_crumbs_of_a_cookie_are_one_field() -> None:
    head = request_of([*GET, (b"cookie", b"a=b"), (b"x", b"y"), (b"cookie", b"c=d"), (b"cookie", b"")])
    assert head.items() == [("cookie", "a=b; c=d; "), ("x", "y")]


def test_the_host_field_may_stand_for_the_authority() -> None:
    assert request_of([*without(b":authority"), (b"host", b"b.test")]).authority == "b.test"
    assert request_of([*GET, (b"host", b"A.test:8443")]).authority == "a.test:8443"
    assert request_of([*GET, (b"host", b"A.test:8443")]).get("host") is None


def test_connect() -> None:
    head = request_of(CONNECT)
    assert (head.method, head.target, head.authority) == ("CONNECT", "a.test:443", "a.test:443")


def test_extended_connect_looks_like_an_upgrade() -> None:
    head = request_of([*SOCKET, (b"sec-websocket-version", b"13")], extended=True)
    assert (head.method, head.target, head.items()) == ("GET", "/a?b=c", [("sec-websocket-version", "13")])
    block = block_of(HpackEncoder(), head, upgrade=True)
    assert {field[:2] for field in decoded(HpackDecoder(), block)[0]} >= {(b":method", b"CONNECT"), (b":protocol", b"websocket")}


def test_a_path_of_options() -> None:
    assert request_of(instead(b":method", b"OPTIONS", instead(b":path", b"*"))).target == "*"


MALFORMED: list[tuple[str, Pairs]] = [
    ("no method", without(b":method")), ("no scheme", without(b":scheme")), ("no path", without(b":path")),
    ("no authority", without(b":authority")), ("nothing", []),
    ("an empty method", instead(b":method", b"")), ("a method with a blank", instead(b":method", b"GE T")),
    ("a method that ends the line", instead(b":method", b"GET /\r\n")),
    ("an empty path", instead(b":path", b"")), ("a path without a slash", instead(b":path", b"a")), ("a star", instead(b":path", b"*")),
    ("an absolute path", instead(b":path", b"http://b.test/")), ("a fragment", instead(b":path", b"/#a")),
    ("an empty authority", instead(b":authority", b"")), ("user information", instead(b":authority", b"u@a.test")),
    ("an authority with a path", instead(b":authority", b"a.test/b")), ("another scheme", instead(b":scheme", b"ftp")),
    ("an empty scheme", instead(b":scheme", b"")),
    ("a status", [*GET, (b":status", b"200")]), ("an unknown pseudo-header field", [*GET, (b":other", b"1")]),
    ("a bare colon", [*GET, (b":", b"1")]), ("a protocol", [*GET, (b":protocol", b"websocket")]),
    ("a pseudo-header field behind others", [*without(b":path"), (b"accept", b"*/*"), (b":path", b"/")]),
    *[(f"{name.decode()} twice", [*GET, (name, value)]) for name, value in GET],
    *[(f"{name.decode()} twice, differing", [(name, b"x"), *GET]) for name, _ in GET],
    *[(name.decode(), [*GET, (name, b"x")]) for name in (b"connection", b"proxy-connection", b"keep-alive", b"upgrade", b"transfer-encoding")],
    ("chunked", [*GET, (b"transfer-encoding", b"chunked")]), ("connection: te", [*GET, (b"connection", b"te")]),
    ("te: gzip", [*GET, (b"te", b"gzip")]), ("te: trailers, gzip", [*GET, (b"te", b"trailers, gzip")]), ("te", [*GET, (b"te", b"")]),
    ("two hosts", [*GET, (b"host", b"a.test:8443"), (b"host", b"a.test:8443")]), ("another host", [*GET, (b"host", b"b.test")]),
    ("a host with another port", [*GET, (b"host", b"a.test")]), ("an empty host", [*without(b":authority"), (b"host", b"")]),
    ("a host of controls", [*GET, (b"host", b"\x41.test:8443".replace(b".", b"\x0e"))]),
    *[(f"length {value!r}", [*GET, (b"content-length", value)]) for value in (b"", b"-1", b"+1", b"1,1", b"0x1", b"1" * 19, b"1 1")],
    ("two lengths", [*GET, (b"content-length", b"1"), (b"content-length", b"2")]),
    ("one length twice", [*GET, (b"content-length", b"1"), (b"content-length", b"1")]),
    ("an empty name", [*GET, (b"", b"x")]), ("a blank before a value", [*GET, (b"x", b" a")]),
    ("a blank behind a value", [*GET, (b"x", b"a\t")]),
    ("CONNECT with a path", [*CONNECT, (b":path", b"/")]), ("CONNECT with a scheme", [*CONNECT, (b":scheme", b"https")]),
    ("CONNECT without a port", instead(b":authority", b"a.test", CONNECT)), ("CONNECT without an authority", CONNECT[:1]),
    ("extended CONNECT that is not allowed", SOCKET),
]  # fmt: skip


@pytest.mark.parametrize("pairs", [row[1] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
def test_malformed_requests_are_refused(pairs: Pairs) -> None:
    with pytest.raises(StreamFault) as caught:
        request_of(pairs)
    assert (caught.value.code, caught.value.status) == (ERRORS.index("PROTOCOL_ERROR"), 400)


@pytest.mark.parametrize("pairs", [instead(b":method", b"GET", SOCKET), without(b":authority", SOCKET), without(b":path", SOCKET),
                                   instead(b":protocol", b"", SOCKET), instead(b":protocol", b"a b", SOCKET)])  # fmt: skip
def test_malformed_extended_connects_are_refused(pairs: Pairs) -> None:
    with pytest.raises(StreamFault):
        request_of(pairs, extended=True)


@pytest.mark.parametrize("protocol", [b"h2c", b"H2C"])
def test_a_tunnel_for_http2_is_refused(protocol: bytes) -> None:
    with pytest.raises(StreamFault) as caught:
        request_of(instead(b":protocol", protocol, SOCKET), extended=True)
    assert caught.value.status == 501


def test_an_unknown_expectation_has_a_status_of_its_own() -> None:
    with pytest.raises(StreamFault) as caught:
        request_of([*GET, (b"expect", b"something")])
    assert caught.value.status == 417


TOKENS = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize("byte", range(256))
def test_every_byte_in_names_values_and_paths(byte: int) -> None:
    """RFC 9113 section 8.2.1, and of what it leaves open the stricter reading of RFC 9110."""
    one = bytes([byte])
    cases = [
        ([*GET, (b"x" + one + b"y", b"v")], byte in TOKENS),
        ([*GET, (b"x", b"a" + one + b"b")], byte == 9 or (byte >= 32 and byte != 127)),
        (instead(b":path", b"/a" + one + b"b"), 33 <= byte <= 126 and byte != 35),
        (instead(b":method", b"A" + one + b"B"), byte in TOKENS or one.isalpha()),
    ]
    for pairs, allowed in cases:
        if allowed:
            request_of(pairs)
        else:
            with pytest.raises(StreamFault):
                request_of(pairs)


def test_responses() -> None:
    head = response_of([(b":status", b"404"), (b"content-length", b"3"), (b"x", b"y")])
    assert (head.status, head.content_length, head.items(), head.version) == (404, 3, [("x", "y")], "2")


@pytest.mark.parametrize("pairs", [
    [], [(b":status", b"20")], [(b":status", b"2000")], [(b":status", b"2x0")], [(b":status", b"099")], [(b":status", b"101")],
    [(b":status", b"200"), (b":status", b"200")], [(b":status", b"200"), (b":path", b"/")], [(b"x", b"y"), (b":status", b"200")],
    [(b":status", b"200"), (b"connection", b"close")], [(b":status", b"200"), (b"X", b"y")],
    [(b":status", b"200"), (b"content-length", b"1"), (b"content-length", b"1")],
])  # fmt: skip
def test_malformed_responses_are_refused(pairs: Pairs) -> None:
    with pytest.raises(StreamFault):
        response_of(pairs)


def test_trailers_lose_what_means_nothing_in_them() -> None:
    assert trailers_of([(b"grpc-status", b"0"), (b"content-type", b"a/b"), (b"x", b"y")]).items() == [("grpc-status", "0"), ("x", "y")]
    for name in FORBIDDEN_TRAILERS - {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "te", "content-length"}:
        assert trailers_of([(name.encode(), b"x")]).items() == []
    for pairs in ([(b":status", b"200")], [(b"x", b"y"), (b":path", b"/")], [(b"connection", b"close")]):
        with pytest.raises(StreamFault):
            trailers_of(pairs)


def made(method: str, target: str, authority: str, fields: list[tuple[str, str]]) -> MessageHead:
    head = MessageHead()
    head.set_request(method, target, authority)
    for name, value in fields:
        head.add(name, value)
    return head


def test_a_request_of_the_older_version_is_written() -> None:
    head = made("POST", "/p", "a.test", [("Host", "x"), ("X-Long-Name-" + "A" * 200, "1"), ("Connection", "x"), ("Authorization", "s")])
    found, _ = decoded(HpackDecoder(), block_of(HpackEncoder(), head, 120))
    assert [field[:2] for field in found] == [
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/p"), (b":authority", b"a.test"),
        (b"x-long-name-" + b"a" * 200, b"1"), (b"authorization", b"s"), (b"content-length", b"120"),
    ]  # fmt: skip
    assert [name for name, _, never in found if never] == [b"authorization"]


def test_nothing_is_written_of_a_head_that_cannot_be() -> None:
    encoder = HpackEncoder()
    with pytest.raises(LocalProtocolError):
        block_of(encoder, made("GET", "/", "", [("x-new", "1")]))
    assert len(encoder.table) == 0


FIELDS = st.lists(st.tuples(st.text("abcxyz-", min_size=1, max_size=8), st.text("abc =;,\u00e4", max_size=12).map(str.strip)), max_size=6)


@given(st.sampled_from(["GET", "HEAD", "POST", "X"]), st.sampled_from(["/", "/a/b?c"]), FIELDS)
def test_what_is_written_comes_back(method: str, target: str, fields: list[tuple[str, str]]) -> None:
    head = made(method, target, "a.test", fields)
    found, _ = decoded(HpackDecoder(), block_of(HpackEncoder(), head))
    back = request_of([field[:2] for field in found])
    assert (back.method, back.target, back.authority, back.items()) == (method, target, "a.test", head.items())
