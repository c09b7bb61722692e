"""Requests of HTTP/2 that a gateway may write down in HTTP/1.1, or in HTTP/2 again, as something else; answers likewise.

What each class is, and where it was published: README.md. A case is (name, parts, outcome). An outcome is a status, `cut` or `Passed`:
what must arrive at the backend, be it of HTTP/1.1 or of HTTP/2. Where it is a status nothing arrives; where it is `cut` nothing complete.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.attack.http2_rig import Pairs, Part, data, head
from tests.attack.recording_rig import NOT_IN_TRAILERS


class Passed(NamedTuple):
    """A request as the backend has it. `fields`: those beside framing and what a gateway adds."""

    method: bytes = b"GET"
    path: bytes = b"/a"
    authority: bytes = b"a.test"
    fields: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    trailers: tuple[tuple[bytes, bytes], ...] = ()
    protocol: bytes = b""


Outcome = str | Passed
Case = tuple[str, list[Part], Outcome]
GET: Pairs = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/a"), (b":authority", b"a.test")]
POST: Pairs = [(b":method", b"POST"), *GET[1:]]
SOCKET: Pairs = [(b":method", b"CONNECT"), (b":protocol", b"websocket"), *GET[1:], (b"sec-websocket-version", b"13")]
MARK = b"GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n"
TOKEN = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
IN_HOST = b"-._~!$&'()*+,;=%0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


SWITCHED = Passed(protocol=b"websocket", fields=((b"sec-websocket-version", b"13"),))


def instead(name: bytes, value: bytes, pairs: Pairs = GET) -> Pairs:
    return [(known, value if known == name else old) for known, old in pairs]


def without(name: bytes, pairs: Pairs = GET) -> Pairs:
    return [pair for pair in pairs if pair[0] != name]


def get(name: str, outcome: Outcome, *fields: tuple[bytes, bytes], pairs: Pairs = GET) -> Case:
    """A request without content."""
    return (name, [head(*pairs, *fields, end=True)], outcome)


def post(name: str, outcome: Outcome, *parts: Part, fields: Pairs | None = None) -> Case:
    return (name, [head(*POST, *(fields or [])), *parts], outcome)


def every_byte() -> dict[str, list[Case]]:
    """Each byte at the beginning, in the middle and at the end of what a request has: RFC 9113 sections 8.2.1 and 8.3.1."""
    found: dict[str, list[Case]] = {
        place: [] for place in ("names", "values", "paths", "authorities", "hosts", "methods", "schemes", "protocols")
    }
    for byte in range(256):
        one = bytes([byte])
        name = f"0x{byte:02x}"
        small = one in TOKEN and not one.isupper()
        visible = 33 <= byte <= 126
        text = visible or byte >= 128
        for where, before, behind in (("before", b"", b"x"), ("within", b"x", b"y"), ("behind", b"x", b"")):
            whole = before + one + behind
            at = f"{name} {where}"
            # What has an underscore is left out: programs behind CGI take it for the field with a hyphen.
            kept = () if byte == 95 else ((whole, b"v"),)
            found["names"].append(get(at, Passed(fields=kept) if small else "400", (whole, b"v")))
            inside = text or (where == "within" and byte in b" \t")
            found["values"].append(get(at, Passed(fields=((b"x-value", whole),)) if inside else "400", (b"x-value", whole)))
            path = b"/" + whole
            found["paths"].append(get(at, Passed(path=path) if visible and byte != 35 else "400", pairs=instead(b":path", path)))
            host = whole + b".test" if where != "behind" else b"test." + whole
            good = one in IN_HOST or (byte == 58 and where == "behind")
            found["authorities"].append(get(at, Passed(authority=host) if good else "400", pairs=instead(b":authority", host)))
            found["hosts"].append(get(at, Passed(authority=host) if good else "400", (b"host", host), pairs=without(b":authority")))
            verb = whole.upper() if one.isalpha() else whole.replace(b"x", b"X").replace(b"y", b"Y")
            found["methods"].append(get(at, Passed(method=verb) if one in TOKEN else "400", pairs=instead(b":method", verb)))
            found["schemes"].append(get(at, "400", pairs=instead(b":scheme", b"http" + one + b"x" if where == "behind" else one + b"http")))
            passed = SWITCHED._replace(protocol=whole) if one in TOKEN else "400"
            found["protocols"].append(get(at, passed, pairs=instead(b":protocol", whole, SOCKET)))
    return found


def injected(name: str, text: bytes) -> list[Case]:
    """Lines of HTTP/1.1 in everything that a request has."""
    return [
        get(f"{name} in a name", "400", (b"x: y" + text, b"v")), get(f"{name} in a value", "400", (b"x", b"y" + text)),
        get(f"{name} in a cookie", "400", (b"cookie", b"a=b"), (b"cookie", b"c" + text)),
        *[get(f"{name} in {part.decode()}", "400", pairs=instead(part, dict(GET)[part] + text)) for part, _ in GET],
        get(f"{name} in the host", "400", (b"host", b"a.test" + text), pairs=without(b":authority")),
        get(f"{name} in the protocol", "400", pairs=instead(b":protocol", b"websocket" + text, SOCKET)),
        post(f"{name} in a trailer", "cut", data(b"ok"), head((b"x", b"y" + text), end=True)),
        post(f"{name} in a trailer's name", "cut", data(b"ok"), head((b"x" + text, b"y"), end=True)),
    ]  # fmt: skip


INJECTED: list[Case] = [
    *injected("a request", b"\r\n\r\n" + MARK), *injected("a field", b"\r\ntransfer-encoding: chunked"), *injected("a bare line feed", b"\nx: y"),
    *injected("a bare carriage return", b"\rx: y"), *injected("a NUL", b"\x00"), *injected("a fold", b"\r\n x"),
]  # fmt: skip

NAMES: list[Case] = [
    get("an empty name", "400", (b"", b"v")), get("a colon alone", "400", (b":", b"v")), get("a known name in capitals", "400", (b"Content-Length", b"0")),
    get("one capital", "400", (b"transfer-encodinG", b"chunked")), get("a space in front", "400", (b" transfer-encoding", b"chunked")),
    get("a space behind", "400", (b"transfer-encoding ", b"chunked")), get("a colon behind", "400", (b"transfer-encoding:", b"chunked")),
    get("a whole line", "400", (b"transfer-encoding: chunked\r\nx", b"v")), get("a long name", Passed(fields=((b"x" * 4000, b"v"),)), (b"x" * 4000, b"v")),
    get("an empty value", Passed(fields=((b"x", b""),)), (b"x", b"")), get("blanks alone", "400", (b"x", b"  ")),
    get("an underscore for a hyphen", Passed(), (b"content_length", b"5"),
        (b"transfer_encoding", b"chunked")),
    get("crumbs of cookies", Passed(fields=((b"cookie", b"a=b; c=d"),)), (b"cookie", b"a=b"), (b"cookie", b"c=d")),
]  # fmt: skip

CONNECTION_FIELDS: list[Case] = [
    *[get(f"{name.decode()}: {value.decode()}", "400", (name, value)) for name, values in {
        b"connection": (b"close", b"keep-alive", b"te", b"content-length", b"upgrade", b"x", b""), b"keep-alive": (b"timeout=5", b""), b"proxy-connection": (b"close", b""),
        b"transfer-encoding": (b"chunked", b"identity", b"gzip, chunked", b"xchunked", b""), b"upgrade": (b"h2c", b"websocket", b""),
        b"te": (b"chunked", b"trailers, chunked", b"trailers;q=0.5", b"gzip", b"", b"trailers,"),
    }.items() for value in values],
    get("te: trailers", Passed(fields=((b"te", b"trailers"),)), (b"te", b"trailers")), get("te in capitals", Passed(fields=((b"te", b"trailers"),)), (b"te", b"Trailers")),
    get("te twice", Passed(fields=((b"te", b"trailers"),)), (b"te", b"trailers"), (b"te", b"trailers")),
    post("chunked with content", "400", data(b"0\r\n\r\n" + MARK, True), fields=[(b"transfer-encoding", b"chunked")]),
    post("chunked and a length", "400", data(b"0\r\n\r\n" + MARK, True), fields=[(b"transfer-encoding", b"chunked"), (b"content-length", b"%d" % (len(MARK) + 5))]),
    get("h2c", "400", (b"connection", b"upgrade, http2-settings"), (b"upgrade", b"h2c"), (b"http2-settings", b"AAMAAABkAARAAAAAAAIAAAAA")),
    get("settings without an upgrade", Passed(fields=((b"http2-settings", b"AAMAAABkAARAAAAAAAIAAAAA"),)), (b"http2-settings", b"AAMAAABkAARAAAAAAAIAAAAA")),
    get("an expectation", "417", (b"expect", b"200-ok")), get("proxy-authenticate", Passed(), (b"proxy-authenticate", b"Basic")),
]  # fmt: skip

OK = Passed(method=b"POST", body=b"ok")
LENGTHS: list[Case] = [
    post("true", OK, data(b"ok", True), fields=[(b"content-length", b"2")]), post("none", OK, data(b"o"), data(b"k", True)),
    post("with zeros in front", OK, data(b"ok", True), fields=[(b"content-length", b"0002")]),
    post("none and no content", Passed(method=b"POST"), data(b"", True)), get("zero", Passed(), (b"content-length", b"0")),
    post("padding of empty frames", OK, data(b""), data(b"ok"), data(b""), data(b"", True), fields=[(b"content-length", b"2")]),
    get("without content", "400", (b"content-length", b"5")), get("of a HEAD", "400", (b"content-length", b"5"), pairs=instead(b":method", b"HEAD")),
    post("too much at once", "cut", data(b"ok" + MARK, True), fields=[(b"content-length", b"2")]),
    post("too much behind", "cut", data(b"o"), data(b"k" + MARK, True), fields=[(b"content-length", b"2")]),
    post("zero and content", "cut", data(MARK, True), fields=[(b"content-length", b"0")]),
    post("too little", "cut", data(b"ok", True), fields=[(b"content-length", b"3")]),
    post("far too little", "cut", data(b"ok", True), fields=[(b"content-length", b"123456789012345678")]),
    post("nothing of it", "cut", data(b"", True), fields=[(b"content-length", b"3")]),
    post("too little before trailers", "cut", data(b"ok"), head((b"x", b"y"), end=True), fields=[(b"content-length", b"3")]),
    *[post(f"{value!r}", "400", data(b"ok", True), fields=[(b"content-length", value)]) for value in (
        b"", b"+2", b"-2", b"2,2", b"2, 2", b"2 ", b" 2", b"0x2", b"2.0", b"2e0", b"1" * 19, b"9" * 30, b"two", b"2;x", b"\xb2", b"02 ", b"2\x0b", b"\xef\xbc\x92")],
    post("twice the same", "400", data(b"ok", True), fields=[(b"content-length", b"2"), (b"content-length", b"2")]),
    post("two", "400", data(b"ok" + MARK, True), fields=[(b"content-length", b"2"), (b"content-length", b"%d" % (2 + len(MARK)))]),
    post("zero and another", "400", data(b"ok", True), fields=[(b"content-length", b"0"), (b"content-length", b"2")]),
    *[(f"of a {verb.decode()} with content", [head(*instead(b":method", verb), (b"content-length", b"2")), data(b"ok", True)], Passed(method=verb, body=b"ok"))
      for verb in (b"GET", b"HEAD", b"OPTIONS", b"DELETE")],
    ("content of a GET that is a request", [head(*GET), data(b"0\r\n\r\n" + MARK, True)], Passed(body=b"0\r\n\r\n" + MARK)),
]  # fmt: skip

PSEUDO: list[Case] = [
    *[get(f"no {name.decode()}", "400", pairs=without(name)) for name, _ in GET], *[get(f"an empty {name.decode()}", "400", pairs=instead(name, b"")) for name, _ in GET],
    *[get(f"{name.decode()} twice", "400", pairs=[*GET, (name, value)]) for name, value in GET],
    *[get(f"another {name.decode()} in front", "400", pairs=[(name, value + b"x"), *GET]) for name, value in GET],
    *[get(f"{name.decode()} behind fields", "400", pairs=[*without(name), (b"x", b"y"), (name, value)]) for name, value in GET],
    *[get(f"{name.decode()} twice, behind fields", "400", (b"x", b"y"), (name, value)) for name, value in GET],
    *[get(f"{name.decode()} in capitals", "400", pairs=[*without(name), (name.upper(), value)]) for name, value in GET],
    get("a status", "400", pairs=[*GET, (b":status", b"200")]), get("an unknown one", "400", pairs=[*GET, (b":x", b"y")]),
    get("one that begins alike", "400", pairs=[*GET, (b":pathx", b"/")]), get("a name with two colons", "400", pairs=[*GET, (b"::path", b"/")]),
    get("a space in a name", "400", pairs=[*without(b":path"), (b":path ", b"/a")]),
    get("nothing at all", "400", pairs=[]), get("a field alone", "400", pairs=[(b"x", b"y")]), get("in another order", Passed(), pairs=GET[::-1]),
    get("the authority last", Passed(), pairs=[*GET[1:], GET[0]]), get("https in plain text", Passed(), pairs=instead(b":scheme", b"https")),
    get("a scheme in capitals", Passed(), pairs=instead(b":scheme", b"HTTP")), get("a scheme that is a URL", "400", pairs=instead(b":scheme", b"http://b.test/x?")),
    get("a method that is a line", "400", pairs=instead(b":method", b"GET /smuggled HTTP/1.1\r\nx: ")), get("a method with a path", "400", pairs=instead(b":method", b"GET /smuggled")),
    post("one in trailers", "cut", data(b"ok"), head((b":path", b"/smuggled"), end=True)), post("a status in trailers", "cut", data(b"ok"), head((b":status", b"200"), end=True)),
    post("one behind other trailers", "cut", data(b"ok"), head((b"x", b"y"), (b":method", b"GET"), end=True)), post("a whole request as trailers", "cut", data(b"ok"), head(*GET, end=True)),
]  # fmt: skip

AUTHORITIES: list[Case] = [
    get("host alone", Passed(), (b"host", b"a.test"), pairs=without(b":authority")), get("the same host", Passed(), (b"host", b"a.test")),
    get("the same in capitals", Passed(), (b"host", b"A.TEST")), get("another host", "400", (b"host", b"b.test")), get("another port", "400", (b"host", b"a.test:80")),
    get("a longer host", "400", (b"host", b"a.test.b")), get("an empty host", "400", (b"host", b"")), get("an empty host alone", "400", (b"host", b""), pairs=without(b":authority")),
    get("the same host twice", "400", (b"host", b"a.test"), (b"host", b"a.test")), get("two hosts", "400", (b"host", b"a.test"), (b"host", b"b.test")),
    get("two hosts alone", "400", (b"host", b"a.test"), (b"host", b"b.test"), pairs=without(b":authority")), get("a list of hosts", Passed(authority=b"a.test,b.test"), (b"host", b"a.test,b.test"), pairs=without(b":authority")),
    get("a list with a blank", "400", (b"host", b"a.test, b.test"), pairs=without(b":authority")), get("a host with a path", "400", (b"host", b"a.test/x"), pairs=without(b":authority")),
    *[get(f"authority {value!r}", "400", pairs=instead(b":authority", value)) for value in (
        b"u@a.test", b"u:p@a.test", b"@a.test", b"a.test@", b"a.test@b.test", b"a.test/", b"a.test?x", b"a.test#x", b"a.test\\b.test", b"http://a.test", b"a.test:x", b"a.test:80:80",
        b"a.test:65536", b"a.test:999999", b":80", b"[::1", b"::1]", b"[::1]x", b"[v1.x]", b"a.test b.test", b"a.test\tb", b" a.test", b"a.test ", b"a.test:-1", b"a.test:+80", b"[]")],
    *[get(f"authority {value!r}", Passed(authority=value), pairs=instead(b":authority", value)) for value in (
        b"A.test", b"a.test:", b"a.test:80", b"a.test:65535", b"[::1]", b"[::1]:80", b"127.0.0.1", b"a.test.", b"x%41.test")],
]  # fmt: skip

PATHS: list[Case] = [
    *[get(f"{value!r}", "400", pairs=instead(b":path", value)) for value in (
        b"", b"a", b"*", b"**", b"*/a", b"?x", b"#", b"/#x", b"/a#", b"/a b", b"/a\tb", b" /a", b"/a ", b"http://b.test/smuggled", b"//b.test/x y", b"b.test:80", b"/a HTTP/1.1\r\nhost: b.test\r\n\r\n",
        b"/a HTTP/1.0", b"/\x7f", b"/\x80", b"/\xff", b"/\x00", b"/\xc3\xa4", b"\\a")],
    *[get(f"{value!r}", Passed(path=value), pairs=instead(b":path", value)) for value in (
        b"/", b"//", b"/?", b"/a?b#c".replace(b"#", b"%23"), b"/%00", b"/%0d%0a", b"/a\\b", b"//b.test/x", b"/a;b=c", b"/[x]", b'/"', b"/<>", b"/^`{|}", b"/?http://b.test/", b"/" + b"x" * 4000)],
    get("a star of OPTIONS", Passed(method=b"OPTIONS", path=b"*"), pairs=instead(b":path", b"*", instead(b":method", b"OPTIONS"))),
    get("a star and more of OPTIONS", "400", pairs=instead(b":path", b"*x", instead(b":method", b"OPTIONS"))),
    get("no slash of OPTIONS", "400", pairs=instead(b":path", b"a", instead(b":method", b"OPTIONS"))),
]  # fmt: skip

TRAILERS: list[Case] = [
    post("good ones", Passed(b"POST", body=b"ok", trailers=((b"check", b"2"), (b"x", b""))), data(b"ok"), head((b"check", b"2"), (b"x", b""), end=True)),
    post("none", OK, data(b"ok"), head(end=True)), post("without content", Passed(b"POST", trailers=((b"check", b"2"),)), head((b"check", b"2"), end=True)),
    post("behind a length", OK._replace(trailers=((b"check", b"2"),)), data(b"ok"), head((b"check", b"2"), end=True), fields=[(b"content-length", b"2")]),
    *[post(f"{name.decode()}", OK if name not in (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade", b"te") else "cut", data(b"ok"),
           head((name, b"5" if name == b"content-length" else b"x"), end=True)) for name in sorted(NOT_IN_TRAILERS)],
    post("a forbidden one beside a good one", OK._replace(trailers=((b"check", b"2"),)), data(b"ok"), head((b"authorization", b"x"), (b"check", b"2"), (b"host", b"b.test"), end=True)),
    *[post(f"{name.decode()}", OK, data(b"ok"), head((name, b"5"), end=True)) for name in (b"content_length", b"transfer_encoding", b"x_forwarded_for")],
    post("a length that is none", "cut", data(b"ok"), head((b"content-length", b"-1"), end=True)), post("chunked", "cut", data(b"ok"), head((b"transfer-encoding", b"chunked"), end=True)),
    post("capitals", "cut", data(b"ok"), head((b"Check", b"2"), end=True)), post("no name", "cut", data(b"ok"), head((b"", b"2"), end=True)),
    post("a blank in front", "cut", data(b"ok"), head((b"check", b" 2"), end=True)), post("without an end", "cut", data(b"ok"), head((b"check", b"2"))),
    post("twice", "cut", data(b"ok"), head((b"check", b"2")), head((b"check", b"2"), end=True)), post("content behind", "cut", head((b"check", b"2")), data(MARK, True)),
]  # fmt: skip

CONNECTS: list[Case] = [
    ("websocket", [head(*SOCKET)], SWITCHED), ("websocket in capitals", [head(*instead(b":protocol", b"WebSocket", SOCKET))], SWITCHED._replace(protocol=b"WebSocket")),
    ("a path", [head(*instead(b":path", b"/x?y", SOCKET))], SWITCHED._replace(path=b"/x?y")), ("a key that nobody needs", [head(*SOCKET, (b"sec-websocket-key", b"x"))], SWITCHED),
    *[get(f"protocol {value!r}", "400", pairs=instead(b":protocol", value, SOCKET)) for value in (
        b"", b"HTTP/2.0", b"a b", b"websocket, h2c", b"websocket\r\nx: y", b" websocket", b"websocket ")],
    # HTTP/2 in a tunnel would be one past the policies.
    *[get(f"protocol {value!r}", "501", pairs=instead(b":protocol", value, SOCKET)) for value in (b"h2c", b"H2C")],
    get("another protocol", SWITCHED._replace(protocol=b"connect-udp"), pairs=instead(b":protocol", b"connect-udp", SOCKET)),
    *[get(f"without {name.decode()}", "400", pairs=without(name, SOCKET)) for name in (b":scheme", b":path", b":authority")],
    get("as a GET", "400", pairs=instead(b":method", b"GET", SOCKET)), get("in small letters", "400", pairs=instead(b":method", b"connect", SOCKET)),
    get("twice", "400", pairs=[*SOCKET[:2], (b":protocol", b"websocket"), *SOCKET[2:]]), get("behind fields", "400", pairs=[*without(b":protocol", SOCKET), (b":protocol", b"websocket")]),
    get("with an upgrade field", "400", (b"upgrade", b"h2c"), pairs=SOCKET), get("with a connection field", "400", (b"connection", b"close"), pairs=SOCKET),
    get("a star", "400", pairs=instead(b":path", b"*", SOCKET)), get("another host", "400", (b"host", b"b.test"), pairs=SOCKET),
    get("with a length", "400", (b"content-length", b"5"), pairs=SOCKET), ("with a length and more to come", [head(*SOCKET, (b"content-length", b"5"))], "400"),
    get("plain CONNECT", "405", pairs=[(b":method", b"CONNECT"), (b":authority", b"a.test:80")]), get("plain CONNECT with a path", "400", pairs=[(b":method", b"CONNECT"), (b":authority", b"a.test:80"), (b":path", b"/")]),
    get("plain CONNECT without a port", "400", pairs=[(b":method", b"CONNECT"), (b":authority", b"a.test")]), get("plain CONNECT with user information", "400", pairs=[(b":method", b"CONNECT"), (b":authority", b"u@a.test:80")]),
    get("plain CONNECT with a scheme", "400", pairs=[(b":method", b"CONNECT"), (b":scheme", b"http"), (b":authority", b"a.test:80")]),
    ("plain CONNECT and content", [head((b":method", b"CONNECT"), (b":authority", b"a.test:80")), data(MARK, True)], "405"),
]  # fmt: skip

CLASSES: dict[str, list[Case]] = {
    **every_byte(), "injected": INJECTED, "known names": NAMES, "fields of a connection": CONNECTION_FIELDS, "lengths": LENGTHS, "pseudo-header fields": PSEUDO,
    "authority and host": AUTHORITIES, "whole paths": PATHS, "trailers": TRAILERS, "extended CONNECT": CONNECTS,
}  # fmt: skip
