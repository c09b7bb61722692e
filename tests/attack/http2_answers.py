"""Answers of HTTP/2 backends that a gateway may write down in HTTP/1.1, or in HTTP/2 again, as something else.

A case is (name, method, parts, outcome). An outcome is what the client is told, `502`, or `cut`: an answer that does not look whole.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.attack.http2_cases import MARK, TOKEN
from tests.attack.http2_rig import Part, data, head
from tests.attack.recording_rig import NOT_IN_TRAILERS


class Told(NamedTuple):
    """An answer as the client has it. `fields`: those beside framing and what a gateway adds."""

    status: int = 200
    body: bytes = b""
    fields: tuple[tuple[bytes, bytes], ...] = ()
    trailers: tuple[tuple[bytes, bytes], ...] = ()


Outcome = str | Told
Case = tuple[str, str, list[Part], Outcome]
OK = (b":status", b"200")
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nstolen"
LENGTH = b"content-length"


def get(name: str, outcome: Outcome, *parts: Part) -> Case:
    return (name, "GET", list(parts), outcome)


def only(name: str, outcome: Outcome, *fields: tuple[bytes, bytes]) -> Case:
    """An answer that is a head."""
    return get(name, outcome, head(*fields, end=True))


def every_byte() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {"names": [], "values": [], "statuses": []}
    for byte in range(256):
        one = bytes([byte])
        small = one in TOKEN and not one.isupper()
        text = 33 <= byte <= 126 or byte >= 128
        for where, before, behind in (("before", b"", b"x"), ("within", b"x", b"y"), ("behind", b"x", b"")):
            whole, at = before + one + behind, f"0x{byte:02x} {where}"
            found["names"].append(only(at, Told(fields=((whole, b"v"),)) if small else "502", OK, (whole, b"v")))
            inside = text or (where == "within" and byte in b" \t")
            found["values"].append(only(at, Told(fields=((b"x-value", whole),)) if inside else "502", OK, (b"x-value", whole)))
        for at, status in (("first", one + b"00"), ("second", b"2" + one + b"0"), ("third", b"20" + one)):
            number = int(status) if status.isdigit() else 0
            if number >= 200:
                found["statuses"].append(only(f"0x{byte:02x} {at}", Told(number), (b":status", status)))
            elif number < 100:
                found["statuses"].append(only(f"0x{byte:02x} {at}", "502", (b":status", status)))
    return found


def injected(name: str, text: bytes) -> list[Case]:
    return [
        only(f"{name} in a name", "502", OK, (b"x" + text, b"v")), only(f"{name} in a value", "502", OK, (b"x", b"y" + text)), only(f"{name} in the status", "502", (b":status", b"200" + text)),
        get(f"{name} in a trailer", "cut", head(OK), data(b"ok"), head((b"x", b"y" + text), end=True)), get(f"{name} in a hint", "502", head((b":status", b"103"), (b"link", b"x" + text)), head(OK, end=True)),
    ]  # fmt: skip


INJECTED: list[Case] = [
    *injected("an answer", b"\r\n\r\n" + ANSWER), *injected("a field", b"\r\nset-cookie: a=b"), *injected("a bare line feed", b"\nx: y"), *injected("a bare carriage return", b"\rx"),
    *injected("a NUL", b"\x00"),
]  # fmt: skip

HEADS: list[Case] = [
    only("good", Told(fields=((b"x", b"y"),)), OK, (b"x", b"y")), only("no status", "502", (b"x", b"y")), only("nothing", "502"), only("an empty status", "502", (b":status", b"")),
    only("two statuses", "502", OK, OK), only("a status behind fields", "502", (b"x", b"y"), OK), only("a status with words", "502", (b":status", b"200 OK")), only("a long status", "502", (b":status", b"0200")),
    only("a status of a switch", "502", (b":status", b"101")), only("a status in capitals", "502", (b":Status", b"200")), only("a path", "502", OK, (b":path", b"/")), only("an unknown one", "502", OK, (b":x", b"y")),
    only("capitals", "502", OK, (b"X", b"y")), only("an empty name", "502", OK, (b"", b"y")), only("a colon alone", "502", OK, (b":", b"y")), only("a space in a name", "502", OK, (b"content-length ", b"0")),
    only("blanks around a value", "502", OK, (b"x", b" y ")), only("an empty value", Told(fields=((b"x", b""),)), OK, (b"x", b"")),
    *[only(f"{name.decode()}: {value.decode()}", "502", OK, (name, value)) for name, value in (
        (b"connection", b"close"), (b"connection", b"content-length"), (b"keep-alive", b"timeout=5"), (b"proxy-connection", b"close"), (b"transfer-encoding", b"chunked"), (b"transfer-encoding", b""), (b"upgrade", b"h2c"), (b"te", b"gzip"))],
    get("chunks", "502", head(OK, (b"transfer-encoding", b"chunked")), data(b"0\r\n\r\n" + ANSWER, True)), get("content before the head", "502", data(ANSWER, True)),
    get("a hint", Told(), head((b":status", b"103"), (b"link", b"x")), head(OK, end=True)), get("a hint that ends", "502", head((b":status", b"103"), end=True)),
    get("a hint with a length", Told(200, b"ok"), head((b":status", b"103"), (LENGTH, b"100")), head(OK), data(b"ok", True)), get("content behind a hint", "502", head((b":status", b"103")), data(ANSWER, True)),
    get("hints without number", "502", *[head((b":status", b"103"))] * 200, head(OK, end=True)), get("two heads", "cut", head(OK), head(OK), data(b"ok", True)),
]  # fmt: skip

LENGTHS: list[Case] = [
    get("true", Told(200, b"ok"), head(OK, (LENGTH, b"2")), data(b"ok", True)), get("none", Told(200, b"ok"), head(OK), data(b"o"), data(b"k", True)), get("none, with an answer in it", Told(200, ANSWER), head(OK), data(ANSWER, True)),
    get("with zeros in front", Told(200, b"ok"), head(OK, (LENGTH, b"0002")), data(b"ok", True)), only("zero", Told(), OK, (LENGTH, b"0")),
    only("without content", "502", OK, (LENGTH, b"5")), get("too much", "cut", head(OK, (LENGTH, b"2")), data(b"ok" + ANSWER, True)), get("too much behind", "cut", head(OK, (LENGTH, b"2")), data(b"o"), data(b"k" + ANSWER, True)),
    get("zero and content", "cut", head(OK, (LENGTH, b"0")), data(ANSWER, True)), get("too little", "cut", head(OK, (LENGTH, b"5")), data(b"ok", True)), get("far too little", "cut", head(OK, (LENGTH, b"9" * 18)), data(b"ok", True)),
    get("too little before trailers", "cut", head(OK, (LENGTH, b"5")), data(b"ok"), head((b"x", b"y"), end=True)),
    *[get(f"{value!r}", "502", head(OK, (LENGTH, value)), data(b"ok", True)) for value in (b"", b"+2", b"-2", b"2,2", b"2, 2", b"0x2", b"2.0", b"1" * 19, b"two", b" 2", b"2;x")],
    get("twice", "502", head(OK, (LENGTH, b"2"), (LENGTH, b"2")), data(b"ok", True)), get("two", "502", head(OK, (LENGTH, b"2"), (LENGTH, b"50")), data(b"ok" + ANSWER, True)),
    ("of a HEAD", "HEAD", [head(OK, (LENGTH, b"50"), end=True)], Told()), ("of a HEAD, zero", "HEAD", [head(OK, (LENGTH, b"0"), end=True)], Told()), ("none of a HEAD", "HEAD", [head(OK, end=True)], Told()),
    ("content of a HEAD", "HEAD", [head(OK, (LENGTH, b"%d" % len(ANSWER))), data(ANSWER, True)], Told()), ("content of a HEAD without a length", "HEAD", [head(OK), data(ANSWER, True)], Told()),
    ("two of a HEAD", "HEAD", [head(OK, (LENGTH, b"5"), (LENGTH, b"6"), end=True)], "502"), ("a sign of a HEAD", "HEAD", [head(OK, (LENGTH, b"+5"), end=True)], "502"),
    *[only(f"of a {status}", Told(status), (b":status", b"%d" % status), (LENGTH, b"50")) for status in (204, 304)],
    *[get(f"content of a {status}", Told(status), head((b":status", b"%d" % status), (LENGTH, b"%d" % len(ANSWER))), data(ANSWER, True)) for status in (204, 304)],
    *[get(f"content of a {status} without a length", Told(status), head((b":status", b"%d" % status)), data(ANSWER), data(MARK, True)) for status in (204, 304)],
    get("content of a 205", Told(205, b"ok"), head((b":status", b"205")), data(b"ok", True)), get("padding of empty frames", Told(200, b"ok"), head(OK), data(b""), data(b"ok"), data(b""), data(b"", True)),
]  # fmt: skip

HOP = (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade", b"te")
TRAILERS: list[Case] = [
    get("good ones", Told(200, b"ok", trailers=((b"check", b"2"), (b"x", b""))), head(OK), data(b"ok"), head((b"check", b"2"), (b"x", b""), end=True)), get("none", Told(200, b"ok"), head(OK), data(b"ok"), head(end=True)),
    get("without content", Told(200, trailers=((b"check", b"2"),)), head(OK), head((b"check", b"2"), end=True)),
    *[get(f"{name.decode()}", "cut" if name in HOP else Told(200, b"ok", trailers=((b"check", b"2"),)), head(OK), data(b"ok"), head((name, b"5"), (b"check", b"2"), end=True)) for name in sorted(NOT_IN_TRAILERS)],
    get("a status", "cut", head(OK), data(b"ok"), head((b":status", b"200"), end=True)), get("a path", "cut", head(OK), data(b"ok"), head((b"x", b"y"), (b":path", b"/"), end=True)), get("capitals", "cut", head(OK), data(b"ok"), head((b"X", b"y"), end=True)),
    get("an empty name", "cut", head(OK), data(b"ok"), head((b"", b"y"), end=True)), get("without an end", "cut", head(OK), data(b"ok"), head((b"x", b"y"))), get("a length that is none", "cut", head(OK), data(b"ok"), head((LENGTH, b"+1"), end=True)),
    get("content behind", "cut", head(OK), data(b"ok"), head((b"x", b"y")), data(ANSWER, True)),
    ("of a HEAD", "HEAD", [head(OK), head((b"check", b"2"), end=True)], Told(trailers=((b"check", b"2"),))),
    get("of a 204", Told(204, trailers=((b"check", b"2"),)), head((b":status", b"204")), head((b"check", b"2"), end=True)),
]  # fmt: skip

CLASSES: dict[str, list[Case]] = {**every_byte(), "injected": INJECTED, "heads": HEADS, "lengths": LENGTHS, "trailers": TRAILERS}
