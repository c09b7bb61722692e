"""Attacks on the borders between requests, by class. What each class is, and where it was published: README.md.

A case is (name, bytes, outcome): for each answer that the client gets the target that the backend must have seen, or the status that the
gateway answers itself. What stands behind it in the bytes must neither arrive nor be answered.
"""

from __future__ import annotations

Outcome = tuple[str | int, ...]
Case = tuple[str, bytes, Outcome]
HOST = b"Host: a.test\r\n"
MARK = b"GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked"
ZERO = b"0\r\n\r\n"


def request(*fields: bytes, line: bytes = b"POST /a HTTP/1.1", body: bytes = b"") -> bytes:
    return line + b"\r\n" + HOST + b"".join(field + b"\r\n" for field in fields) + b"\r\n" + body


def chunked(body: bytes, *fields: bytes) -> bytes:
    return request(CHUNKED, *fields, body=body) + MARK


def sized(name: str, value: bytes) -> Case:
    """A length that is none, before a body that is a request."""
    return (name, request(b"Content-Length:" + value, body=MARK) + MARK, (400,))


def coded(name: str, field: bytes, outcome: Outcome = (400,)) -> list[Case]:
    """A transfer coding that one of two readers may miss, beside a length, which is always refused, and alone."""
    refused = outcome if outcome == (501,) else (400,)
    length = b"Content-Length: %d" % (len(ZERO) + len(MARK))
    return [
        (f"{name}, a length before", request(length, field, body=ZERO + MARK), refused),
        (f"{name}, a length behind", request(field, length, body=ZERO + MARK), refused),
        (f"{name}, no length", request(field, body=ZERO + MARK), outcome),
    ]


CL_TE: list[Case] = [
    ("length and chunks", request(b"Content-Length: %d" % len(ZERO + MARK), CHUNKED, body=ZERO + MARK), (400,)),
    ("a length of the rest", request(b"Content-Length: 6", CHUNKED, body=ZERO + b"G") + MARK, (400,)),
    ("a length of 0", request(b"Content-Length: 0", CHUNKED, body=ZERO + MARK), (400,)),
    ("of a GET", request(b"Content-Length: 5", CHUNKED, line=b"GET /a HTTP/1.1", body=ZERO + MARK), (400,)),
    ("in HTTP/1.0", request(b"Content-Length: 5", CHUNKED, line=b"POST /a HTTP/1.0", body=ZERO + MARK), (400,)),
    ("behind a good one", request(b"Content-Length: 2", body=b"ok") + request(b"Content-Length: 5", CHUNKED, body=ZERO) + MARK,
     ("/a", 400)),
]  # fmt: skip

TE_CL: list[Case] = [
    ("chunks and a length", request(CHUNKED, b"Content-Length: 4", body=b"%x\r\n%s\r\n" % (len(MARK), MARK) + ZERO), (400,)),
    ("a length of 0 behind", request(CHUNKED, b"Content-Length: 0", body=ZERO + MARK), (400,)),
    ("no body at all", request(CHUNKED, b"Content-Length: 4"), (400,)),
    ("TE.0: OPTIONS with chunks", request(CHUNKED, line=b"OPTIONS /a HTTP/1.1", body=b"2\r\nok\r\n" + ZERO) + MARK, ("/a", "/smuggled")),
    ("TE.0: HEAD with chunks", request(CHUNKED, line=b"HEAD /a HTTP/1.1", body=b"2\r\nok\r\n" + ZERO), ("/a",)),
]

TE_TE: list[Case] = [
    *coded("another word", b"Transfer-Encoding: xchunked"),
    *coded("a prefix", b"Transfer-Encoding: chunkedx"),
    *coded("a space before the colon", b"Transfer-Encoding : chunked"),
    *coded("a tab before the colon", b"Transfer-Encoding\t: chunked"),
    *coded("a vertical tab", b"Transfer-Encoding:\x0bchunked"),
    *coded("a vertical tab behind a space", b"Transfer-Encoding: \x0bchunked"),
    *coded("a form feed", b"Transfer-Encoding: \x0cchunked"),
    *coded("a space that does not break", b"Transfer-Encoding: \xa0chunked"),
    *coded("a control behind", b"Transfer-Encoding: chunked\x00"),
    *coded("a delete behind", b"Transfer-Encoding: chunked\x7f"),
    *coded("quoted", b'Transfer-Encoding: "chunked"'),
    *coded("in single quotes", b"Transfer-Encoding: 'chunked'"),
    *coded("a parameter", b"Transfer-Encoding: chunked;x=y"),
    *coded("twice in a list", b"Transfer-Encoding: chunked, chunked"),
    *coded("twice in lines", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
    *coded("another one behind", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: cow"),
    *coded("another one before", b"Transfer-Encoding: cow\r\nTransfer-Encoding: chunked"),
    *coded("identity behind", b"Transfer-Encoding: chunked, identity"),
    *coded("identity before", b"Transfer-Encoding: identity, chunked", (501,)),
    *coded("identity alone", b"Transfer-Encoding: identity"),
    *coded("an empty one", b"Transfer-Encoding:"),
    *coded("an empty one and chunked", b"Transfer-Encoding:\r\nTransfer-Encoding: chunked"),
    *coded("folded", b"Transfer-Encoding:\r\n chunked"),
    *coded("folded by a tab", b"Transfer-Encoding:\r\n\tchunked"),
    *coded("folded inside", b"Transfer-Encoding: chunked\r\n , identity"),
    *coded("a line feed inside", b"Transfer-Encoding:\nchunked"),
    *coded("a line feed before", b"X: y\nTransfer-Encoding: chunked"),
    *coded("a carriage return before", b"X: y\rTransfer-Encoding: chunked"),
    *coded("a carriage return behind", b"Transfer-Encoding: chunked\r\r"),
    *coded("a space before the name", b" Transfer-Encoding: chunked"),
    *coded("NUL in the name", b"Transfer-\x00Encoding: chunked"),
    *coded("a letter that folds to ASCII", "Transfer-Encoding: chun\u212aed".encode()),
    *coded("a colon twice", b"Transfer-Encoding:: chunked"),
    *coded("gzip before", b"Transfer-Encoding: gzip, chunked", (501,)),
    *coded("a comma before", b"Transfer-Encoding: ,chunked", (501,)),
    *coded("a comma behind", b"Transfer-Encoding: chunked,"),
    *coded("capitals", b"TRANSFER-ENCODING: CHUNKED", ("/a", "/smuggled")),
    *coded("without a space", b"Transfer-Encoding:chunked", ("/a", "/smuggled")),
    *coded("tabs and spaces around", b"Transfer-Encoding: \t chunked \t", ("/a", "/smuggled")),
    ("underscores, no length", request(b"Transfer_Encoding: chunked", body=b""), ("/a",)),
    ("underscores, a length", request(b"Transfer_Encoding: chunked", b"Content-Length: 2", body=b"ok") + MARK, ("/a", "/smuggled")),
    ("the word of the header in Connection", request(b"Connection: close, transfer-encoding", CHUNKED, body=b"2\r\nok\r\n" + ZERO), ("/a",)),
]

CL: list[Case] = [
    ("two that differ", request(b"Content-Length: 0", b"Content-Length: %d" % len(MARK), body=MARK), (400,)),
    ("two that differ, turned", request(b"Content-Length: %d" % len(MARK), b"Content-Length: 0", body=MARK), (400,)),
    ("two alike", request(b"Content-Length: 2", b"Content-Length: 2", body=b"ok") + MARK, (400,)),
    sized("a list", b" 2, 2"), sized("a list that differs", b" 0, 40"), sized("a plus", b" +40"), sized("a minus", b" -40"),
    sized("minus zero", b" -0"), sized("hexadecimal", b" 0x28"), sized("octal", b" 0o50"), sized("a point", b" 40.0"), sized("an exponent", b" 4e1"),
    sized("an underscore", b" 4_0"), sized("a space inside", b" 4 0"), sized("a tab inside", b" 4\t0"), sized("empty", b""), sized("a space", b" "),
    sized("words", b" forty"), sized("letters behind", b" 40a"), sized("a semicolon", b" 40;"), sized("quotes", b' "40"'), sized("a comma", b" 40,"),
    sized("beyond 64 bits", b" 18446744073709551656"), sized("beyond 32 bits and more", b" 99999999999999999999999999"),
    sized("a vertical tab", b" \x0b40"), sized("NUL behind", b" 40\x00"), sized("Arabic digits", " \u0664\u0660".encode()),
    sized("folded", b"\r\n 40"), sized("forty zeros", b" " + b"0" * 40 + b"40"), sized("a carriage return", b" 4\r0"),
    ("a space before the colon", request(b"Content-Length : 40", body=MARK), (400,)),
    ("a space before the name", request(b"X: y", b" Content-Length: 40", body=MARK), (400,)),
    ("a long name (CVE-2021-40346)", request(b"Content-Length0" + b"a" * 255 + b":", b"Content-Length: 40", body=MARK[:40]), ("/a",)),
    ("named as an option", request(b"Connection: keep-alive, content-length", b"Content-Length: 2", body=b"ok") + MARK, ("/a", "/smuggled")),
    ("underscores", request(b"Content_Length: 40", b"Content-Length: 2", body=b"ok") + MARK, ("/a", "/smuggled")),
    ("tabs around", request(b"Content-Length:\t2\t", body=b"ok") + MARK, ("/a", "/smuggled")),
]

CL_0: list[Case] = [
    ("GET with a body", request(b"Content-Length: %d" % len(MARK), line=b"GET /a HTTP/1.1", body=MARK), ("/a",)),
    ("HEAD with a body", request(b"Content-Length: %d" % len(MARK), line=b"HEAD /a HTTP/1.1", body=MARK), ("/a",)),
    ("a body behind a redirect's target", request(b"Content-Length: %d" % len(MARK), line=b"POST /direct HTTP/1.1", body=MARK), (200,)),
    ("a body behind a 404", request(b"Content-Length: %d" % len(MARK), line=b"POST /none HTTP/1.1", body=MARK), (404,)),
    ("a body behind a 405", request(b"Content-Length: %d" % len(MARK), line=b"CONNECT a.test:80 HTTP/1.1", body=MARK), (405,)),
    ("a chunked body behind a 404", request(CHUNKED, line=b"POST /none HTTP/1.1", body=b"%x\r\n%s\r\n" % (len(MARK), MARK) + ZERO), (404,)),
    ("a body for an early answer", request(b"Content-Length: %d" % len(MARK), line=b"POST /x/-early HTTP/1.1", body=MARK), ("/x/-early",)),
]

CHUNKS: list[Case] = [
    *((name, chunked(data + b"\r\nok\r\n" + ZERO), (400,)) for name, data in [
        ("no size", b""), ("no hexadecimal", b"g"), ("a plus", b"+2"), ("a minus", b"-2"), ("0x", b"0x2"), ("an underscore", b"0_2"),
        ("a space before", b" 2"), ("a space behind", b"2 "), ("a tab behind", b"2\t"), ("NUL behind", b"2\x00"), ("a vertical tab", b"2\x0b"),
        ("sixteen digits", b"0000000000000002"), ("beyond 64 bits", b"10000000000000002"), ("the most", b"ffffffffffffffff"), ("beyond 32 bits",
        b"1" + b"0" * 15 + b"2"), ("a comma", b"2,2"), ("a space before the semicolon", b"2 ;a=b"), ("a name missing", b"2;"), ("a value missing", b"2;a="),
        ("a quote open", b'2;a="b'), ("a control in a quote", b'2;a="\x01"'), ("a line feed in a quote", b'2;a="\n"'),
        ("a line feed in an extension", b"2;a\nb"), ("a carriage return in one", b"2;a\rb"), ("an extension of 5,000 bytes", b"2;" + b"a" * 5000),
        ("a carriage return more", b"2\r"),
    ]),
    *((name, chunked(body), (400,)) for name, body in [
        ("a line feed behind the size (CVE-2025-22871)", b"2\nok\r\n" + ZERO), ("a line feed behind the data", b"2\r\nok\n" + ZERO),
        ("a carriage return behind the data", b"2\r\nok\r" + ZERO), ("nothing behind the data", b"2\r\nok" + ZERO),
        ("two bytes of another kind behind it (CVE-2025-43859)", b"2\r\nokXX" + ZERO), ("more data than said", b"2\r\nokay\r\n" + ZERO),
        ("less data than said", b"4\r\nok\r\n" + ZERO), ("a line feed at the end", b"2\r\nok\r\n0\n\n"), ("the end by line feed", b"0\r\n\n"),
        ("the end by carriage return", b"0\r\n\r\r"), ("an empty line before", b"\r\n" + ZERO),
        ("a line feed in an extension of the last", b"0;\n\r\n\r\n"),
    ]),
    ("extensions", chunked(b'2;a;b=c;d="e;\\"f"\r\nok\r\n0;x=y\r\n\r\n'), ("/a", "/smuggled")),
    ("capitals", chunked(b"A\r\n0123456789\r\n" + ZERO), ("/a", "/smuggled")),
    ("zeros before", chunked(b"002\r\nok\r\n000\r\n\r\n"), ("/a", "/smuggled")),
    ("chunks of one byte", chunked(b"1\r\no\r\n1\r\nk\r\n" + ZERO), ("/a", "/smuggled")),
    ("cut off", request(CHUNKED, body=b"2\r\nok\r\n"), (400,)),
    ("cut off in a chunk", request(CHUNKED, body=b"20\r\nok"), (400,)),
]

# No gateway that merges trailers into the head, or a backend that does, may be led to another framing, host or identity.
FORBIDDEN = (
    "Transfer-Encoding: chunked", "Content-Length: 40", "Host: evil.test", "Connection: close", "Upgrade: websocket", "TE: trailers", "Trailer: x",
    "Authorization: Bearer x", "Proxy-Authorization: Basic x", "Proxy-Authenticate: Basic", "WWW-Authenticate: Basic", "Cookie: s=1", "Set-Cookie: s=1",
    "Content-Type: text/html", "Content-Encoding: gzip", "Content-Range: bytes 0-1/2", "Cache-Control: no-store", "Expect: 100-continue",
    "Max-Forwards: 1", "Pragma: no-cache", "Range: bytes=0-1", "Age: 1", "Expires: 0", "Date: now", "Location: /x", "Retry-After: 1", "Vary: *",
    "X-Forwarded-For: 10.0.0.1", "X-Forwarded-Host: evil.test", "X-Forwarded-Proto: https", "X-Real-IP: 10.0.0.1", "Forwarded: for=10.0.0.1",
    "If-Match: x", "If-None-Match: *", "If-Modified-Since: now", "If-Unmodified-Since: now", "If-Range: x", "Warning: 199 x", "Content_Length: 40", "X_User: root",
)  # fmt: skip
TRAILERS: list[Case] = [
    *((text.partition(":")[0], chunked(b"2\r\nok\r\n0\r\n" + text.encode() + b"\r\nX-Fine: 1\r\n\r\n"), ("/a", "/smuggled")) for text in FORBIDDEN),
    *((name, chunked(b"2\r\nok\r\n0\r\n" + data + b"\r\n\r\n"), (400,)) for name, data in [
        ("a line without a colon", b"x"), ("a request as trailer", MARK), ("a space before the colon", b"X : y"), ("folded", b"X: y\r\n z"),
        ("a line feed", b"X: y\nZ: 1"), ("a carriage return", b"X: y\rZ: 1"), ("NUL", b"X: \x00"), ("no name", b": y"),
    ]),
    ("300 of them", chunked(b"0\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(300)) + b"\r\n"), (431,)),
    ("too long", chunked(b"0\r\nX: " + b"y" * 20_000 + b"\r\n\r\n"), (431,)),
]


def spoiled(name: str, head: bytes, status: int = 400) -> Case:
    """A head that is none, with a request behind it."""
    return (name, head + MARK, (status,))


LINES: list[Case] = [
    *(spoiled(name, request(field, line=b"GET /a HTTP/1.1")) for name, field in [
        ("folded", b"X: a\r\n b"), ("folded by a tab", b"X: a\r\n\tb"), ("a fold that is empty", b"X: a\r\n "), ("a bare carriage return", b"X: a\rb"),
        ("a carriage return at the end", b"X: a\r"), ("a carriage return before a request", b"X: a\r\r" + MARK[:-4]), ("NUL in a value", b"X: a\x00b"),
        ("a control in a value", b"X: a\x01b"), ("an escape in a value", b"X: a\x1bb"), ("a delete in a value", b"X: a\x7fb"), ("NUL in a name", b"X\x00: a"),
        ("a control in a name", b"X\x01: a"), ("a byte above ASCII in a name", b"X\xff: a"), ("a space in a name", b"X Y: a"), ("no name (CVE-2023-25725)", b": a"),
        ("no colon", b"X"), ("a slash in a name", b"X/Y: a"), ("a bracket in a name", b"[X]: a"), ("a quote in a name", b'"X": a'), ("a comma in a name", b"X,Y: a"),
        ("a line feed in a value", b"X: a\nY: b"),
    ]),
    spoiled("line feeds alone", b"GET /a HTTP/1.1\nHost: a.test\n\n"),
    spoiled("the last line by line feed", b"GET /a HTTP/1.1\r\nHost: a.test\r\n\n"),
    spoiled("carriage returns alone", b"GET /a HTTP/1.1\r\rHost: a.test\r\r"),
    spoiled("the first line folded", b"GET /a HTTP/1.1\r\n X: y\r\nHost: a.test\r\n\r\n"),
    *(spoiled(name, line + b"\r\n" + HOST + b"\r\n", status) for name, line, status in [
        ("two spaces", b"GET  /a HTTP/1.1", 400), ("two spaces behind", b"GET /a  HTTP/1.1", 400), ("a tab", b"GET\t/a HTTP/1.1", 400),
        ("a tab behind", b"GET /a\tHTTP/1.1", 400), ("a space in the target", b"GET /a b HTTP/1.1", 400), ("a request in the line", b"GET /a HTTP/1.1 /b HTTP/1.1", 400),
        ("a space behind", b"GET /a HTTP/1.1 ", 400), ("a space before", b" GET /a HTTP/1.1", 400), ("a vertical tab", b"GET\x0b/a HTTP/1.1", 400),
        ("a carriage return", b"GET /a\r HTTP/1.1", 400), ("NUL in the target", b"GET /a\x00 HTTP/1.1", 400), ("a control in it", b"GET /a\x01 HTTP/1.1", 400),
        ("a byte above ASCII", b"GET /\xff HTTP/1.1", 400), ("a delete in it", b"GET /\x7f HTTP/1.1", 400), ("a fragment (CVE-2023-45539)", b"GET /a#b HTTP/1.1", 400),
        ("no slash", b"GET a HTTP/1.1", 400), ("no target", b"GET HTTP/1.1", 400), ("a method with a brace", b"G{T /a HTTP/1.1", 400),
        ("a method with NUL", b"G\x00T /a HTTP/1.1", 400), ("lower case", b"GET /a http/1.1", 400), ("1.01", b"GET /a HTTP/1.01", 400), ("01.1", b"GET /a HTTP/01.1", 400),
        ("1.1x", b"GET /a HTTP/1.1x", 400), ("+1.1", b"GET /a HTTP/+1.1", 400), ("comma", b"GET /a HTTP/1,1", 400), ("2.0", b"GET /a HTTP/2.0", 505),
        ("1.2", b"GET /a HTTP/1.2", 505), ("1.9", b"GET /a HTTP/1.9", 505), ("0.9", b"GET /a HTTP/0.9", 505), ("no version", b"GET /a", 400),
        ("ICAP", b"GET /a ICAP/1.0", 400),
    ]),
    spoiled("two empty lines before", b"\r\n\r\n" + request(line=b"GET /a HTTP/1.1")),
    spoiled("a line feed before", b"\n" + request(line=b"GET /a HTTP/1.1")),
    spoiled("a carriage return before", b"\r" + request(line=b"GET /a HTTP/1.1")),
    ("an empty line before", b"\r\n" + request(line=b"GET /a HTTP/1.1") + MARK, ("/a", "/smuggled")),
    ("spaces around a value", request(b"X: \t a b \t ", line=b"GET /a HTTP/1.1") + MARK, ("/a", "/smuggled")),
]

HOSTS: list[Case] = [
    *(spoiled(name, b"GET /a HTTP/1.1\r\n" + fields + b"\r\n") for name, fields in [
        ("none", b""), ("two", HOST + b"Host: b.test\r\n"), ("two alike", HOST + HOST), ("a space before the second's colon", HOST + b"Host : b.test\r\n"),
        ("the second folded", HOST + b" Host: b.test\r\n"), ("the first folded", b"X: y\r\n Host: a.test\r\n"), ("a list", b"Host: a.test, b.test\r\n"),
        ("a user", b"Host: u@a.test\r\n"), ("a path", b"Host: a.test/b\r\n"), ("a fragment", b"Host: a.test#b\r\n"), ("a query", b"Host: a.test?b\r\n"),
        ("a backslash", b"Host: a.test\\b\r\n"), ("a port of words", b"Host: a.test:x\r\n"), ("two ports", b"Host: a.test:80:81\r\n"), ("a space", b"Host: a.test b\r\n"),
        ("NUL", b"Host: a.test\x00\r\n"), ("a bracket", b"Host: [::1\r\n"), ("empty", b"Host:\r\n"),
    ]),
    *(spoiled(name, b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n") for name, target in [
        ("absolute, a user", b"http://u@a.test/a"), ("absolute, no host", b"http:///a"), ("absolute, another scheme", b"file:///a"),
        ("absolute, a fragment", b"http://a.test/a#b"), ("absolute, a backslash", b"http://a.test\\@b.test/a"),
    ]),
    ("absolute, Host of another", b"GET http://b.test/a HTTP/1.1\r\n" + HOST + b"\r\n" + MARK, ("/a", "/smuggled")),
    ("absolute, a blocked host", b"GET http://blocked.test/a HTTP/1.1\r\n" + HOST + b"\r\n" + MARK, (200, "/smuggled")),
    ("absolute, in HTTP/1.0", b"GET http://b.test/a HTTP/1.0\r\n\r\n", ("/a",)),
    ("an underscore beside Host", b"GET /a HTTP/1.1\r\n" + HOST + b"_Host: b.test\r\nX_Forwarded_Host: b.test\r\n\r\n", ("/a",)),
]

OLD: list[Case] = [
    spoiled("HTTP/0.9", b"GET /a\r\n"),
    ("HTTP/1.0 ends behind one", b"GET /a HTTP/1.0\r\n" + HOST + b"\r\n" + MARK, ("/a",)),
    ("HTTP/1.0 that stays", b"GET /a HTTP/1.0\r\n" + HOST + b"Connection: keep-alive\r\n\r\n" + MARK, ("/a", "/smuggled")),
    ("HTTP/1.0 without a host", b"GET /a HTTP/1.0\r\n\r\n" + MARK, (400,)),
    ("HTTP/1.0 with chunks", b"POST /a HTTP/1.0\r\n" + HOST + CHUNKED + b"\r\n\r\n" + ZERO + MARK, (400,)),
    ("HTTP/1.0 with chunks that stays", b"POST /a HTTP/1.0\r\n" + HOST + CHUNKED + b"\r\nConnection: keep-alive\r\n\r\n" + ZERO + MARK, (400,)),
    ("HTTP/1.0 with a body and no length", b"POST /a HTTP/1.0\r\n" + HOST + b"\r\n" + MARK, ("/a",)),
    ("HTTP/1.0 that expects", b"POST /a HTTP/1.0\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\nok" + MARK, ("/a",)),
]

AFTER: list[Case] = [
    ("CONNECT", b"CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n" + MARK, (405,)),
    ("CONNECT with a length", b"CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\nContent-Length: 0\r\n\r\n" + MARK, (405,)),
    ("CONNECT with chunks", b"CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\nTransfer-Encoding: chunked\r\n\r\n" + ZERO + MARK, (405,)),
    ("CONNECT of a path", b"CONNECT /a HTTP/1.1\r\n" + HOST + b"\r\n" + MARK, (400,)),
    ("a good one, then CONNECT", MARK + b"CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n" + MARK, ("/smuggled", 405)),
    ("three good ones and a bad one", MARK * 3 + b"GET / HTTP/9.9\r\n\r\n" + MARK, ("/smuggled", "/smuggled", "/smuggled", 505)),
    ("a bad body and more", chunked(b"x\r\n") + MARK * 3, (400,)),
    ("close is kept", request(b"Connection: close", line=b"GET /a HTTP/1.1") + MARK, ("/a",)),
    ("close in a list", request(b"Connection: x, Close , y", line=b"GET /a HTTP/1.1") + MARK, ("/a",)),
]

EXPECT: list[Case] = [
    ("another expectation", request(b"Expect: 200-ok", b"Content-Length: 2", body=b"ok") + MARK, (417,)),
    ("a space before 100", request(b"Expect: 100 continue", b"Content-Length: 2", body=b"ok") + MARK, (417,)),
    ("a name in letters", request(b"Expect: y 100-continue", b"Content-Length: 2", body=b"ok") + MARK, (417,)),
    ("capitals", request(b"Expect: 100-Continue", b"Content-Length: 2", body=b"ok") + MARK, ("/a", "/smuggled")),
    ("with chunks", request(b"Expect: 100-continue", CHUNKED, body=b"2\r\nok\r\n" + ZERO) + MARK, ("/a", "/smuggled")),
    ("of a GET", request(b"Expect: 100-continue", line=b"GET /a HTTP/1.1") + MARK, ("/a", "/smuggled")),
    ("and refused", request(b"Expect: 100-continue", b"Content-Length: %d" % len(MARK), line=b"POST /none HTTP/1.1", body=MARK) + MARK, (404,)),
    ("0.CL by an early answer", request(b"Expect: 100-continue", b"Content-Length: %d" % len(MARK), line=b"POST /x/-early HTTP/1.1", body=MARK),
     ("/x/-early",)),
    ("a backend with a 100 of its own", request(b"Expect: 100-continue", b"Content-Length: 2", line=b"POST /x/-twice HTTP/1.1", body=b"ok") + MARK,
     ("/x/-twice", "/smuggled")),
]  # fmt: skip

ANSWERS: list[Case] = [
    ("a second answer behind", b"GET /x/-extra HTTP/1.1\r\n" + HOST + b"\r\n" + MARK, ("/x/-extra", "/smuggled")),
    ("behind that to a HEAD", b"HEAD /x/-extra HTTP/1.1\r\n" + HOST + b"\r\n", ("/x/-extra",)),
    ("a 100 nobody asked for", b"GET /x/-twice HTTP/1.1\r\n" + HOST + b"\r\n" + MARK, ("/x/-twice", "/smuggled")),
]

UPGRADES: list[Case] = [
    ("h2c", request(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA", line=b"GET /a HTTP/1.1") + MARK, ("/a", "/smuggled")),
    ("websocket of a version that is none", request(b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 1337", line=b"GET /a HTTP/1.1") + MARK,
     ("/a", "/smuggled")),
]  # fmt: skip

CLASSES: dict[str, list[Case]] = {
    "CL.TE": CL_TE, "TE.CL": TE_CL, "TE.TE": TE_TE, "CL": CL, "CL.0": CL_0, "chunks": CHUNKS, "trailers": TRAILERS, "lines": LINES, "hosts": HOSTS,
    "old versions": OLD, "after a refusal": AFTER, "expect": EXPECT, "answers": ANSWERS, "upgrades": UPGRADES,
}  # fmt: skip
