"""Differential test: our codec and h11 agree on every message, or the difference is on the list."""

from __future__ import annotations

import re

import effort
from h11_oracle import REFUSED, cut, ours, theirs
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_drivers.http1 import CLIENT, SERVER

PRISTINE = re.compile(rb"[-a-z]+ /[!-\"$-~]* http/1\.[01]\r\nhost: a\.test\r\n")

# Why we refuse what h11 takes. A predicate over the lower-cased input.
DELIBERATE = {
    "bare LF ends no line (RFC 9112 2.2 lets a recipient accept it; proxies that do get out of step)": lambda d: (
        b"\n" in d.replace(b"\r\n", b"")
    ),
    "both content-length and transfer-encoding (smuggling)": lambda d: (
        d.count(b"content-length") + d.count(b"transfer-encoding") > 1
    ),
    "a repeated content-length, even the same": lambda d: d.count(b"content-length") > 1 or b"," in d,
    "transfer codings but chunked": lambda d: b"transfer-encoding" in d,
    "folded lines": lambda d: b"\r\n " in d or b"\r\n\t" in d,
    "request line and host are checked, not passed on": lambda d: not PRISTINE.match(d),
    "chunk lines hold a size and extensions, nothing else": lambda d: b"chunked" in d,
}

NAMES = st.sampled_from([b"X-A", b"accept", b"Cookie", b"x_b", b"Connection", b"TE"])
VALUES = st.sampled_from([b"1", b"a b", b"", b"close", b"keep-alive", b"\xe9t\xe9", b"x" * 200, b"trailers"])
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=5)
BODY = st.binary(max_size=60)


def lines(fields: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(name + b": " + value + b"\r\n" for name, value in fields)


def framed(body: bytes, kind: str) -> bytes:
    if kind == "length":
        return b"Content-Length: %d\r\n\r\n" % len(body) + body
    if kind == "chunked":
        middle = len(body) // 2
        parts = [part for part in (body[:middle], body[middle:]) if part]
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
        return b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\nX-T: 1\r\n\r\n"
    return b"\r\n"


KINDS = st.sampled_from(["length", "chunked", "none"])
METHODS = st.sampled_from([b"GET", b"POST", b"OPTIONS", b"M-SEARCH"])


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    version = draw(st.sampled_from([b"1.1", b"1.1", b"1.0"]))
    kind = draw(KINDS) if version == b"1.1" else draw(st.sampled_from(["length", "none"]))
    target = draw(st.sampled_from([b"/", b"/a/b?c=d", b"/%20", b"*" if False else b"/x"]))
    head = draw(METHODS) + b" " + target + b" HTTP/" + version + b"\r\nHost: a.test\r\n"
    return head + lines(draw(FIELDS)) + framed(draw(BODY), kind)


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    status = draw(st.sampled_from([b"200 OK", b"404 Not Found", b"204 No Content", b"304 x", b"500 "]))
    fields = [item for item in draw(FIELDS) if item[0] not in (b"Connection", b"TE")]
    return b"HTTP/1.1 " + status + b"\r\n" + lines(fields) + framed(draw(BODY), draw(KINDS))


CUTS = st.lists(st.integers(1, 400), max_size=6)


@settings(max_examples=effort.examples(400), deadline=None)
@given(requests(), CUTS)
def test_requests_are_read_as_h11_reads_them(data: bytes, cuts: list[int]) -> None:
    assert ours(SERVER, cut(data, cuts)) == theirs(SERVER, cut(data, cuts))


@settings(max_examples=effort.examples(400), deadline=None)
@given(responses(), CUTS, st.sampled_from(["GET", "HEAD"]))
def test_responses_are_read_as_h11_reads_them(data: bytes, cuts: list[int], method: str) -> None:
    assert ours(CLIENT, cut(data, cuts), method) == theirs(CLIENT, cut(data, cuts), method)


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(requests()))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 1))] = draw(
            st.sampled_from([b"\n", b"\r", b" ", b":", b"\0", b"0", b"-", b";", b"", b"A"])
        )
    return bytes(data)


@settings(max_examples=effort.examples(800), deadline=None)
@given(broken())
def test_we_accept_nothing_that_h11_refuses_and_agree_on_what_both_accept(data: bytes) -> None:
    mine, other = ours(SERVER, [data]), theirs(SERVER, [data])
    if mine[-1:] == [REFUSED]:
        # Stricter is allowed, for the reasons on the list.
        assert other[-1:] == [REFUSED] or any(rule(data.lower()) for rule in DELIBERATE.values())
        return
    # h11 also refuses bytes behind the last message of a connection; we close without reading them.
    if other in (mine, [*mine, REFUSED]):
        return
    # h11 refuses a few things we may pass on: they are harmless to framing.
    assert other[-1:] == [REFUSED]
    assert LOOSER(data.lower()), (data, mine, other)


def LOOSER(data: bytes) -> bool:
    """h11 wants an empty chunk extension to be absent, HTTP/1.0 requests to know no Expect, and no empty line in front of
    a request line, which RFC 9112 section 2.2 asks servers to ignore; all are harmless.
    """
    return b";" in data or b"http/1.0" in data or data.startswith(b"\r\n") or b"\r\n\r\n\r\n" in data


@settings(max_examples=effort.examples(300), deadline=None)
@given(st.one_of(requests(), broken()), CUTS)
def test_any_cut_gives_the_same_events(data: bytes, cuts: list[int]) -> None:
    assert ours(SERVER, cut(data, cuts)) == ours(SERVER, [data])
