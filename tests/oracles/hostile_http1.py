"""Hostile HTTP/1.1 input: what must be refused, with the status it deserves. Data for unit and end-to-end tests.

`{}` stands for nothing here: every entry is the whole of what the peer sends. A case is (name, bytes, status).
"""

from __future__ import annotations

HOST = b"Host: a.test\r\n"


def get(*fields: bytes, line: bytes = b"GET / HTTP/1.1") -> bytes:
    return line + b"\r\n" + HOST + b"".join(field + b"\r\n" for field in fields) + b"\r\n"


def post(*fields: bytes, body: bytes = b"") -> bytes:
    return get(*fields, line=b"POST / HTTP/1.1") + body


def chunked(body: bytes) -> bytes:
    return post(b"Transfer-Encoding: chunked", body=body)


LENGTHS = [
    ("length-conflicting", post(b"Content-Length: 5", b"Content-Length: 6", body=b"hello!"), 400),
    ("length-repeated", post(b"Content-Length: 5", b"Content-Length: 5", body=b"hello"), 400),
    ("length-listed", post(b"Content-Length: 5, 5", body=b"hello"), 400),
    ("length-listed-differing", post(b"Content-Length: 5,6", body=b"hello"), 400),
    ("length-plus", post(b"Content-Length: +5", body=b"hello"), 400),
    ("length-minus", post(b"Content-Length: -5", body=b"hello"), 400),
    ("length-hexadecimal", post(b"Content-Length: 0x5", body=b"hello"), 400),
    ("length-hex-digits", post(b"Content-Length: a", body=b"hello"), 400),
    ("length-empty", post(b"Content-Length:", body=b"hello"), 400),
    ("length-space-inside", post(b"Content-Length: 5 0", body=b"hello"), 400),
    ("length-decimal-point", post(b"Content-Length: 5.0", body=b"hello"), 400),
    ("length-exponent", post(b"Content-Length: 5e0", body=b"hello"), 400),
    ("length-underscore", post(b"Content-Length: 1_0", body=b"hello"), 400),
    ("length-overlong", post(b"Content-Length: 99999999999999999999", body=b"x"), 400),
    ("length-many-zeros", post(b"Content-Length: " + b"0" * 40 + b"5", body=b"hello"), 400),
    ("length-comma", post(b"Content-Length: 5,", body=b"hello"), 400),
    ("length-quoted", post(b'Content-Length: "5"', body=b"hello"), 400),
    ("length-arabic-digit", post("Content-Length: \u0665".encode(), body=b"hello"), 400),
]

CODINGS = [
    ("both-lengths", post(b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"), 400),
    ("both-lengths-other-order", post(b"Transfer-Encoding: chunked", b"Content-Length: 5", body=b"0\r\n\r\n"), 400),
    ("coding-repeated", post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"), 400),
    ("coding-twice-in-list", post(b"Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"), 400),
    ("coding-identity", post(b"Transfer-Encoding: identity", body=b""), 400),
    ("coding-gzip", post(b"Transfer-Encoding: gzip", body=b""), 400),
    ("coding-chunked-not-last", post(b"Transfer-Encoding: chunked, gzip", body=b""), 400),
    ("coding-gzip-chunked", post(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"), 501),
    ("coding-unknown", post(b"Transfer-Encoding: xchunked", body=b"0\r\n\r\n"), 400),
    ("coding-quoted", post(b'Transfer-Encoding: "chunked"', body=b"0\r\n\r\n"), 400),
    ("coding-parameter", post(b"Transfer-Encoding: chunked;q=1", body=b"0\r\n\r\n"), 400),
    ("coding-empty", post(b"Transfer-Encoding:", body=b""), 400),
    ("coding-vertical-tab", post(b"Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n"), 400),
    ("coding-in-1.0", b"POST / HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("coding-space-before-colon", post(b"Transfer-Encoding : chunked", body=b"0\r\n\r\n"), 400),
]

LINES = [
    ("bare-lf-everywhere", b"GET / HTTP/1.1\nHost: a.test\n\n", 400),
    ("bare-lf-in-fields", b"GET / HTTP/1.1\r\nHost: a.test\nX: y\r\n\r\n", 400),
    ("bare-lf-at-end", b"GET / HTTP/1.1\r\nHost: a.test\r\n\n", 400),
    ("bare-cr-in-value", get(b"X: a\rb"), 400),
    ("bare-cr-in-line", b"GET /\r HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("cr-cr-instead-of-cr-lf", b"GET / HTTP/1.1\r\r" + HOST + b"Content-Length: 0\r\n\r\n", 400),
    ("cr-cr-lf", b"GET / HTTP/1.1\r\r\n" + HOST + b"\r\n", 400),
    ("folded", get(b"X: a\r\n b"), 400),
    ("folded-tab", get(b"X: a\r\n\tb"), 400),
    ("folded-first", b"GET / HTTP/1.1\r\n X: y\r\n" + HOST + b"\r\n", 400),
    ("nameless", get(b": value"), 400),
    ("no-colon", get(b"nonsense"), 400),
    ("space-before-colon", get(b"X : y"), 400),
    ("tab-before-colon", get(b"X\t: y"), 400),
    ("space-in-name", get(b"X Y: z"), 400),
    ("parenthesis-in-name", get(b"X(y): z"), 400),
    ("high-byte-in-name", get(b"X\xe9: z"), 400),
    ("nul-in-name", get(b"X\0: z"), 400),
    ("nul-in-value", get(b"X: a\0b"), 400),
    ("bell-in-value", get(b"X: a\x07b"), 400),
    ("escape-in-value", get(b"X: a\x1b[0m"), 400),
    ("delete-in-value", get(b"X: a\x7fb"), 400),
]

HOSTS = [
    ("host-missing", b"GET / HTTP/1.1\r\nX: y\r\n\r\n", 400),
    ("host-repeated", b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400),
    ("host-two-names", b"GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n", 400),
    ("host-empty", b"GET / HTTP/1.1\r\nHost:\r\n\r\n", 400),
    ("host-with-path", b"GET / HTTP/1.1\r\nHost: a.test/x\r\n\r\n", 400),
    ("host-with-user", b"GET / HTTP/1.1\r\nHost: u@a.test\r\n\r\n", 400),
    ("host-with-space", b"GET / HTTP/1.1\r\nHost: a test\r\n\r\n", 400),
    ("host-list", b"GET / HTTP/1.1\r\nHost: a.test, b.test\r\n\r\n", 400),
    ("host-bad-port", b"GET / HTTP/1.1\r\nHost: a.test:http\r\n\r\n", 400),
    ("host-long-port", b"GET / HTTP/1.1\r\nHost: a.test:123456\r\n\r\n", 400),
    ("host-two-ports", b"GET / HTTP/1.1\r\nHost: a.test:80:81\r\n\r\n", 400),
    ("host-open-bracket", b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400),
    ("host-query", b"GET / HTTP/1.1\r\nHost: a.test?x\r\n\r\n", 400),
    ("host-high-byte", b"GET / HTTP/1.1\r\nHost: \xe9.test\r\n\r\n", 400),
    ("absolute-with-user", b"GET http://u:p@a.test/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("absolute-without-host", b"GET http:///x HTTP/1.1\r\n" + HOST + b"\r\n", 400),
]

START_LINES = [
    ("version-2.0", b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", 505),
    ("version-1.2", b"GET / HTTP/1.2\r\n" + HOST + b"\r\n", 505),
    ("version-0.9", b"GET / HTTP/0.9\r\n" + HOST + b"\r\n", 505),
    ("version-lower-case", b"GET / http/1.1\r\n" + HOST + b"\r\n", 400),
    ("version-short", b"GET / HTTP/1\r\n" + HOST + b"\r\n", 400),
    ("version-long", b"GET / HTTP/1.10\r\n" + HOST + b"\r\n", 400),
    ("version-missing", b"GET /\r\n" + HOST + b"\r\n", 400),
    ("version-trailing-space", b"GET / HTTP/1.1 \r\n" + HOST + b"\r\n", 400),
    ("two-spaces", b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("space-in-target", b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("tab-separator", b"GET\t/\tHTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("leading-space", b" GET / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("method-with-colon", b"G:T / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("method-high-byte", b"G\xc9T / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("target-fragment", b"GET /a#b HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("target-high-byte", b"GET /\xe9 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("target-nul", b"GET /\0 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("target-relative", b"GET index.html HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("target-other-scheme", b"GET ftp://a.test/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("target-asterisk-with-get", b"GET * HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("tls-hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    ("two-blank-lines", b"\r\n\r\n\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("expectation-unknown", post(b"Expect: 200-ok", b"Content-Length: 1", body=b"x"), 417),
    ("target-huge", b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
    ("head-huge", get(*(b"X-%d: " % i + b"v" * 1000 for i in range(80))), 431),
    ("value-huge", get(b"X: " + b"v" * 70000), 431),
    ("fields-many", get(*(b"X-%d: v" % i for i in range(300))), 431),
]

CHUNKS = [
    ("chunk-size-missing", chunked(b"\r\nabc\r\n0\r\n\r\n"), 400),
    ("chunk-size-not-hex", chunked(b"xyz\r\nabc\r\n0\r\n\r\n"), 400),
    ("chunk-size-signed", chunked(b"+3\r\nabc\r\n0\r\n\r\n"), 400),
    ("chunk-size-negative", chunked(b"-3\r\nabc\r\n0\r\n\r\n"), 400),
    ("chunk-size-0x", chunked(b"0x3\r\nabc\r\n0\r\n\r\n"), 400),
    ("chunk-size-huge", chunked(b"FFFFFFFFFFFFFFFF\r\nabc"), 400),
    ("chunk-size-zeros", chunked(b"0" * 30 + b"3\r\nabc\r\n0\r\n\r\n"), 400),
    ("chunk-size-space-before", chunked(b" 3\r\nabc\r\n0\r\n\r\n"), 400),
    ("chunk-size-space-behind", chunked(b"3 \r\nabc\r\n0\r\n\r\n"), 400),
    ("chunk-size-underscore", chunked(b"1_0\r\nabc\r\n0\r\n\r\n"), 400),
    ("chunk-line-bare-lf", chunked(b"3\nabc\r\n0\r\n\r\n"), 400),
    ("chunk-end-bare-lf", chunked(b"3\r\nabc\n0\r\n\r\n"), 400),
    ("chunk-end-missing", chunked(b"3\r\nabcd\r\n0\r\n\r\n"), 400),
    ("chunk-longer-than-said", chunked(b"2\r\nabc\r\n0\r\n\r\n"), 400),
    ("chunk-extension-control", chunked(b"3;a=\x01\r\nabc\r\n0\r\n\r\n"), 400),
    ("chunk-extension-bare-cr", chunked(b"3;a=\rb\r\nabc\r\n0\r\n\r\n"), 400),
    ("chunk-extension-huge", chunked(b"3;" + b"a" * 5000 + b"\r\nabc\r\n0\r\n\r\n"), 400),
    ("trailer-malformed", chunked(b"0\r\nbad trailer\r\n\r\n"), 400),
    ("trailer-bare-lf", chunked(b"0\r\nX: y\n\r\n"), 400),
    ("trailer-folded", chunked(b"0\r\nX: y\r\n z\r\n\r\n"), 400),
    ("trailers-huge", chunked(b"0\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"v" * 500) for i in range(50)) + b"\r\n"), 431),
]

HOSTILE_REQUESTS = LENGTHS + CODINGS + LINES + HOSTS + START_LINES + CHUNKS


def response(*fields: bytes, line: bytes = b"HTTP/1.1 200 OK", body: bytes = b"") -> bytes:
    return line + b"\r\n" + b"".join(field + b"\r\n" for field in fields) + b"\r\n" + body


# What a backend may not answer; the gateway says 502 (before a head was passed on).
HOSTILE_RESPONSES = [
    ("not-http", b"SSH-2.0-OpenSSH\r\n\r\n"),
    ("binary", b"\x00\x01\x02\x03\r\n\r\n"),
    ("version-2", response(b"Content-Length: 0", line=b"HTTP/2.0 200 OK")),
    ("version-lower-case", response(b"Content-Length: 0", line=b"http/1.1 200 OK")),
    ("status-two-digits", response(b"Content-Length: 0", line=b"HTTP/1.1 20 OK")),
    ("status-four-digits", response(b"Content-Length: 0", line=b"HTTP/1.1 2000 OK")),
    ("status-letters", response(b"Content-Length: 0", line=b"HTTP/1.1 abc OK")),
    ("status-below-100", response(b"Content-Length: 0", line=b"HTTP/1.1 099 OK")),
    ("status-signed", response(b"Content-Length: 0", line=b"HTTP/1.1 +20 OK")),
    ("two-spaces", response(b"Content-Length: 0", line=b"HTTP/1.1  200 OK")),
    ("reason-control", response(b"Content-Length: 0", line=b"HTTP/1.1 200 O\x01K")),
    ("bare-lf", b"HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
    ("bare-cr", response(b"X: a\rb", b"Content-Length: 0")),
    ("folded", response(b"X: a\r\n b", b"Content-Length: 0")),
    ("nameless", response(b": a", b"Content-Length: 0")),
    ("no-colon", response(b"nonsense", b"Content-Length: 0")),
    ("space-before-colon", response(b"Content-Length : 0")),
    ("nul-in-value", response(b"X: \0", b"Content-Length: 0")),
    ("both-lengths", response(b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n")),
    ("length-conflicting", response(b"Content-Length: 5", b"Content-Length: 6", body=b"hello")),
    ("length-negative", response(b"Content-Length: -1")),
    ("length-hexadecimal", response(b"Content-Length: 0x5", body=b"hello")),
    ("length-overlong", response(b"Content-Length: 99999999999999999999")),
    ("coding-unknown", response(b"Transfer-Encoding: gzip")),
    ("coding-twice", response(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n")),
    ("coding-in-1.0", response(b"Transfer-Encoding: chunked", line=b"HTTP/1.0 200 OK", body=b"0\r\n\r\n")),
    ("head-huge", response(*(b"X-%d: " % i + b"v" * 1000 for i in range(80)))),
    ("fields-many", response(*(b"X-%d: v" % i for i in range(300)))),
    ("status-line-huge", response(line=b"HTTP/1.1 200 " + b"x" * 20000)),
    ("switch-unasked", response(b"Connection: upgrade", b"Upgrade: x", line=b"HTTP/1.1 101 Switching Protocols")),
    ("head-cut", b"HTTP/1.1 200 OK\r\nContent-Le"),
    ("chunk-size-bad", response(b"Transfer-Encoding: chunked", body=b"zz\r\n")),
]
