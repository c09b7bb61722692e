"""What a codec writes, what it refuses to write, and what a connection may be used for afterwards."""

from __future__ import annotations

import pytest

from headgate_drivers.events import DataEvent, EndOfMessage, NeedData, Paused, RequestHead, ResponseHead, Upgraded
from headgate_drivers.http1 import CLIENT, SERVER, PythonCodec, bench_send_request
from headgate_engine.errors import LocalProtocolError, RemoteProtocolError

GET = b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n"


def served(request: bytes = GET) -> PythonCodec:
    """A server codec that has read one whole request."""
    codec = PythonCodec(SERVER)
    codec.receive(request)
    while not isinstance(codec.next_event(), Paused | NeedData):
        pass
    return codec


def asked(request: RequestHead) -> PythonCodec:
    """A client codec that has sent one whole request."""
    codec = PythonCodec(CLIENT)
    codec.send(request)
    codec.send(EndOfMessage())
    return codec


def events(codec: PythonCodec, data: bytes) -> list[object]:
    codec.receive(data)
    found: list[object] = []
    while not isinstance(event := codec.next_event(), NeedData | Paused):
        found.append(event)
        if isinstance(event, Upgraded):
            break
    return found


@pytest.mark.parametrize("number", [0, 1, 9, 10, 11, 99, 100, 101, 999, 1000, 65535, 99_999, 100_000, 10**9, 10**17 - 1, 10**17, 2**63 - 1])
def test_numbers_have_all_their_digits(number: int) -> None:
    assert b"\r\ncontent-length: %d\r\n" % number in served().send(ResponseHead(200, content_length=number))


# -- a server's answers --------------------------------------------------------------------------------------------------

FRAMED = [
    (GET, ResponseHead(200), b"content-length: 0\r\n"),
    (GET, ResponseHead(404), b"content-length: 0\r\n"),
    (GET, ResponseHead(200, chunked=True), b"transfer-encoding: chunked\r\n"),
    (GET, ResponseHead(204, content_length=5), None),
    (GET, ResponseHead(304), None),
    (GET, ResponseHead(304, content_length=5), b"content-length: 5\r\n"),
    (b"HEAD / HTTP/1.1\r\nhost: a.test\r\n\r\n", ResponseHead(200), None),
    (b"HEAD / HTTP/1.1\r\nhost: a.test\r\n\r\n", ResponseHead(200, content_length=7), b"content-length: 7\r\n"),
]


@pytest.mark.parametrize(("request_bytes", "response", "framing"), FRAMED)
def test_a_client_can_tell_where_an_answer_ends(request_bytes: bytes, response: ResponseHead, framing: bytes | None) -> None:
    written = served(request_bytes).send(response).lower()
    if framing is None:
        assert b"content-length" not in written
        assert b"transfer-encoding" not in written
    else:
        assert framing in written


def test_an_empty_piece_ends_no_body() -> None:
    codec = served()
    codec.send(ResponseHead(200, chunked=True))
    assert codec.send(DataEvent(b"")) == b""
    assert codec.send(DataEvent(b"x")) == b"1\r\nx\r\n"
    assert codec.send(EndOfMessage()) == b"0\r\n\r\n"


BAD_FIELDS = [("x-a", "1\r\nx-b: 2"), ("x-a", "1\n2"), ("x-a", "\0"), ("x a", "1"), ("", "1"), ("x:a", "1")]


@pytest.mark.parametrize(("name", "value"), BAD_FIELDS)
def test_fields_that_would_split_a_message_are_not_written(name: str, value: str) -> None:
    with pytest.raises((LocalProtocolError, ValueError)):
        served().send(ResponseHead(200, ((name, value),)))
    with pytest.raises((LocalProtocolError, ValueError)):
        PythonCodec(CLIENT).send(RequestHead("GET", "/", "a.test", ((name, value),)))


@pytest.mark.parametrize("target", ["", "/a b", "/a\r\nx: y", "/\0", "/a\tb"])
def test_targets_that_would_split_a_request_are_not_written(target: str) -> None:
    with pytest.raises((LocalProtocolError, ValueError)):
        PythonCodec(CLIENT).send(RequestHead("GET", target, "a.test"))


@pytest.mark.parametrize("authority", ["a b", "a\r\nx: y", "a\0"])
def test_hosts_that_would_split_a_request_are_not_written(authority: str) -> None:
    with pytest.raises((LocalProtocolError, ValueError)):
        PythonCodec(CLIENT).send(RequestHead("GET", "/", authority))


def test_more_or_less_body_than_announced_is_our_own_fault() -> None:
    codec = served()
    codec.send(ResponseHead(200, content_length=2))
    with pytest.raises(LocalProtocolError):
        codec.send(DataEvent(b"abc"))
    codec = served()
    codec.send(ResponseHead(200, content_length=2))
    with pytest.raises(LocalProtocolError):
        codec.send(EndOfMessage())


def test_nothing_is_sent_out_of_turn() -> None:
    codec = served()
    with pytest.raises(LocalProtocolError):
        codec.send(DataEvent(b"x"))
    codec.send(ResponseHead(200, content_length=0))
    with pytest.raises(LocalProtocolError):
        codec.send(ResponseHead(200, content_length=0))


def test_an_answer_to_an_old_client_keeps_its_connection_only_if_asked() -> None:
    assert b"connection: close" in served(b"GET / HTTP/1.0\r\n\r\n").send(ResponseHead(200, content_length=0))
    kept = served(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    assert b"connection: keep-alive" in kept.send(ResponseHead(200, content_length=0))


PHRASES = [
    (200, "OK", b"HTTP/1.1 200 OK\r\n"),              # that of the table
    (200, "", b"HTTP/1.1 200 OK\r\n"),
    (200, "ok", b"HTTP/1.1 200 ok\r\n"),              # as long, and another
    (200, "Fine by me", b"HTTP/1.1 200 Fine by me\r\n"),
    (404, "OK", b"HTTP/1.1 404 OK\r\n"),
    (299, "", b"HTTP/1.1 299 \r\n"),                  # a status without an entry
    (799, "Own", b"HTTP/1.1 799 Own\r\n"),            # behind the table
]


@pytest.mark.parametrize(("status", "reason", "line"), PHRASES)
def test_the_reason_of_a_peer_is_passed_on(status: int, reason: str, line: bytes) -> None:
    assert served().send(ResponseHead(status, reason=reason, content_length=0)).startswith(line)


ASKED = [b"keep-alive", b"Keep-Alive", b"keep-alive ", b"keep-alive, x-a", b"keep-alivf", b"keep-alive,close"]


@pytest.mark.parametrize("value", ASKED)
def test_an_old_client_asks_for_its_connection_in_any_spelling(value: bytes) -> None:
    written = served(b"GET / HTTP/1.0\r\nConnection: " + value + b"\r\n\r\n").send(ResponseHead(200, content_length=0))
    kept = value not in (b"keep-alivf", b"keep-alive,close")
    assert (b"connection: keep-alive" in written) == kept


def test_a_line_break_cannot_be_smuggled_into_what_we_send() -> None:
    with pytest.raises(ValueError):
        served().send(ResponseHead(200, (("x", "a\r\nset-cookie: b"),)))
    with pytest.raises(ValueError):
        PythonCodec(CLIENT).send(RequestHead("GET", "/ HTTP/1.1\r\nX: y", "a.test"))


# -- a client's reading --------------------------------------------------------------------------------------------------


def test_bytes_behind_a_response_are_no_answer() -> None:
    codec = asked(RequestHead("GET", "/", "a.test"))
    events(codec, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n")
    assert not codec.can_reuse


def test_a_whole_response_leaves_a_connection_that_can_be_used() -> None:
    codec = asked(RequestHead("GET", "/", "a.test"))
    events(codec, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    assert codec.can_reuse


@pytest.mark.parametrize("framing", [b"content-length: 5", b"transfer-encoding: chunked"])
def test_204_has_no_body_and_a_peer_that_announces_one_is_left(framing: bytes) -> None:
    codec = asked(RequestHead("GET", "/", "a.test"))
    found = events(codec, b"HTTP/1.1 204 No Content\r\n%s\r\n\r\n" % framing)
    assert isinstance(found[0], ResponseHead)
    assert isinstance(found[1], EndOfMessage)
    assert not codec.can_reuse


@pytest.mark.parametrize("framing", [b"content-length: 5", b"transfer-encoding: chunked"])
def test_informational_responses_have_no_body(framing: bytes) -> None:
    codec = asked(RequestHead("GET", "/", "a.test"))
    with pytest.raises(RemoteProtocolError):
        events(codec, b"HTTP/1.1 103 Hints\r\n%s\r\n\r\n" % framing)


@pytest.mark.parametrize("status", [200, 204, 299])
def test_any_2xx_opens_the_tunnel_of_connect(status: int) -> None:
    codec = asked(RequestHead("CONNECT", "a.test:443", "a.test:443"))
    found = events(codec, b"HTTP/1.1 %d X\r\ncontent-length: 3\r\n\r\nraw" % status)
    assert found[-1] == Upgraded(b"raw")


# -- connection options --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "refused"), [(100, False), (101, True), (10_000, True)])
def test_a_head_names_a_bounded_number_of_connection_options(count: int, refused: bool) -> None:
    half = b",".join(b"x%d" % i for i in range(count // 2))
    rest = b", ".join(b"y%d" % i for i in range(count - count // 2))
    data = b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: %s\r\nconnection: %s\r\n\r\n" % (half, rest)
    if refused:
        with pytest.raises(RemoteProtocolError):
            events(PythonCodec(SERVER), data)
    else:
        assert events(PythonCodec(SERVER), data)


def test_named_fields_stay_behind_whatever_their_case_and_protected_ones_do_not() -> None:
    data = (
        b"GET / HTTP/1.1\r\nHost: a.test\r\nX-One: 1\r\nx-two: 2\r\nauthorization: me\r\n"
        b"connection: x-ONE , authorization,, x-TWO\r\n\r\n"
    )
    written = bench_send_request(data, 1).lower()
    assert b"x-one" not in written
    assert b"x-two" not in written
    assert b"authorization: me\r\n" in written


@pytest.mark.parametrize(("target", "fine"), [
    (b"CONNECT a.test:443", True), (b"CONNECT a.test", False), (b"CONNECT a.test:0", False), (b"CONNECT a.test:", False),
    (b"GET http://a.test:65535/", True), (b"GET http://a.test:65536/", False), (b"GET http://[::1]:80/", True),
    (b"GET http://[::g]/", False), (b"GET http://[]/", False), (b"OPTIONS *", True), (b"GET *", False)])
def test_targets(target: bytes, fine: bool) -> None:
    data = target + b" HTTP/1.1\r\nhost: a.test:443\r\n\r\n"
    if fine:
        assert events(PythonCodec(SERVER), data)
    else:
        with pytest.raises(RemoteProtocolError):
            events(PythonCodec(SERVER), data)
