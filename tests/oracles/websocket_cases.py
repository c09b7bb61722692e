"""The case groups of the Autobahn test suite for WebSocket (https://github.com/crossbario/autobahn-testsuite), as tables.

The suite itself runs on Python 2 only. Each case is what a client sends, and what it hears from a server that echoes messages, which
here is `wsproto`. Group 8 is empty, 11 was never published.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage
from wsproto.extensions import Extension, PerMessageDeflate

from headgate_engine.websocket.frames import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, frame

MASK = b"\x9a\x01\xfe\x35"
Heard = tuple[str, object]


def sent(payload: bytes = b"", opcode: int = TEXT, *, final: bool = True, bits: int = 0) -> bytes:
    """A frame of a client."""
    made = bytearray(frame(payload, opcode, MASK))
    made[0] = (made[0] if final else made[0] & 0x7F) | bits << 4
    return bytes(made)


def ended(code: int = 1000, reason: bytes = b"") -> bytes:
    return sent(code.to_bytes(2, "big") + reason, CLOSE)


@dataclass(frozen=True)
class Case:
    """`frames` of the client, a close behind them unless it closes itself. `heard`: events; the last one is a close with its code."""

    name: str
    frames: list[bytes]
    heard: list[Heard]
    offer: str = ""            # of compression
    closes: bool = False
    data: bytes = field(init=False, default=b"")

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", b"".join(self.frames) + (b"" if self.closes else ended()))

    @property
    def code(self) -> object:
        return self.heard[-1][1]


class Speaker:
    """A server that echoes each message whole, answers pings and closes."""

    def __init__(self, extensions: list[Extension]) -> None:
        self._protocol = Connection(ConnectionType.SERVER, extensions)
        self._parts: list[str | bytes] = []
        self.done = False

    def take(self, data: bytes) -> bytes:
        """What it answers; nothing any more once it has closed."""
        found = b""
        if self.done:
            return found
        self._protocol.receive_data(data)
        for event in self._protocol.events():
            if isinstance(event, TextMessage | BytesMessage):
                self._parts.append(event.data)
                if event.message_finished:
                    empty = "" if isinstance(event, TextMessage) else b""
                    found += self._protocol.send(type(event)(data=empty.join(self._parts)))  # type: ignore[arg-type]
                    self._parts = []
            elif isinstance(event, Ping):
                found += self._protocol.send(event.response())
            elif isinstance(event, CloseConnection):
                self.done = True
                return found + self._protocol.send(event.response())
        return found


def heard_in(data: bytes, extensions: list[Extension]) -> list[Heard]:
    """What a client hears in the bytes of a server."""
    protocol, found, parts = Connection(ConnectionType.CLIENT, extensions), [], []
    protocol.receive_data(data)
    for event in protocol.events():
        if isinstance(event, TextMessage | BytesMessage):
            parts.append(event.data)
            if event.message_finished:
                text = isinstance(event, TextMessage)
                found.append(("text" if text else "bytes", ("" if text else b"").join(parts)))  # type: ignore[arg-type]
                parts = []
        elif isinstance(event, Pong):
            found.append(("pong", bytes(event.payload)))
        elif isinstance(event, CloseConnection):
            found.append(("close", int(event.code)))
    return found


def accepted(offer: str) -> tuple[str, list[Extension], list[Extension]]:
    """What a server answers to an offer of compression, and the extensions of server and client."""
    if not offer:
        return "", [], []
    server, client = PerMessageDeflate(), PerMessageDeflate()
    said = server.accept(offer)
    answer = f"{server.name}; {said}" if isinstance(said, str) and said else server.name
    client.finalize(answer)
    return answer, [server], [client]


CLOSED: Heard = ("close", 1000)
BROKEN: Heard = ("close", 1002)
NO_TEXT: Heard = ("close", 1007)


def echoed(name: str, frames: list[bytes], *heard: Heard) -> Case:
    return Case(name, frames, [*heard, CLOSED])


def broken(name: str, *frames: bytes, before: Iterable[Heard] = (), end: Heard = BROKEN) -> Case:
    return Case(name, list(frames), [*before, end])


def text(content: str) -> Heard:
    return ("text", content)


def pieces_of(content: bytes, size: int, opcode: int = TEXT) -> list[bytes]:
    """A message in frames of this size."""
    parts = [content[at : at + size] for at in range(0, len(content), size)] or [b""]
    return [sent(part, CONTINUATION if at else opcode, final=at == len(parts) - 1) for at, part in enumerate(parts)]


SIZES = (0, 125, 126, 127, 128, 65535, 65536)
FRAMING = [
    *[echoed(f"1.1 text of {size}", [sent(b"*" * size)], text("*" * size)) for size in SIZES],
    *[echoed(f"1.2 binary of {size}", [sent(b"\xfe" * size, BINARY)], ("bytes", b"\xfe" * size)) for size in SIZES],
]
PINGS = [
    echoed("2.1 empty ping", [sent(b"", PING)], ("pong", b"")), echoed("2.2 ping", [sent(b"Hello", PING)], ("pong", b"Hello")),
    echoed("2.3 binary ping", [sent(b"\x00\xff\xfe\xfd", PING)], ("pong", b"\x00\xff\xfe\xfd")), echoed("2.4 ping of 125", [sent(b"\xfe" * 125, PING)], ("pong", b"\xfe" * 125)),
    broken("2.5 ping of 126", b"\x89\xfe\x00\x7e" + MASK + b"\xfe" * 126), echoed("2.7 pong that nobody asked for", [sent(b"", PONG)]), echoed("2.8 the same with a payload", [sent(b"x", PONG)]),
    echoed("2.9 pong, then ping", [sent(b"x", PONG), sent(b"y", PING)], ("pong", b"y")), echoed("2.10 ten pings", [sent(b"%d" % at, PING) for at in range(10)], *[("pong", b"%d" % at) for at in range(10)]),
]  # fmt: skip
HELLO = sent(b"Hello")
RESERVED = [
    *[broken(f"3.{bits} reserved bits {bits}", HELLO, sent(b"x", TEXT, bits=bits), sent(b"", PING), before=[text("Hello")]) for bits in range(1, 8)],
    broken("3.5 of a binary frame", sent(b"x", BINARY, bits=5)), broken("3.6 of a ping", sent(b"x", PING, bits=6)), broken("3.7 of a close", sent(b"", CLOSE, bits=7)),
]  # fmt: skip
OPCODES = [
    *[broken(f"4.1 opcode {code}", sent(b"x", code)) for code in range(3, 8)], *[broken(f"4.2 opcode {code}", sent(b"", code)) for code in range(11, 16)],
    *[broken(f"4 opcode {code} between", HELLO, sent(b"", code), sent(b"", PING), before=[text("Hello")]) for code in (3, 7, 11, 15)],
]  # fmt: skip
PART, MIDDLE, REST = sent(b"one,", final=False), sent(b"two,", CONTINUATION, final=False), sent(b"three", CONTINUATION)
ASK: Heard = ("pong", b"?")
FRAGMENTS = [
    broken("5.1 ping in fragments", sent(b"x", PING, final=False), sent(b"y", CONTINUATION)), broken("5.2 pong in fragments", sent(b"x", PONG, final=False), sent(b"y", CONTINUATION)),
    echoed("5.3 text in two", [PART, REST], text("one,three")), echoed("5.4 in three", [PART, MIDDLE, REST], text("one,two,three")),
    echoed("5.6 a ping between", [PART, sent(b"?", PING), REST], ASK, text("one,three")), echoed("5.7 pings between", [PART, sent(b"?", PING), MIDDLE, sent(b"?", PING), REST], ASK, ASK, text("one,two,three")),
    *[broken(f"5.9 a continuation of nothing, {final}", sent(b"x", CONTINUATION, final=final), HELLO) for final in (True, False)],
    broken("5.11 and behind a message", HELLO, sent(b"x", CONTINUATION), before=[text("Hello")]), broken("5.15 one too many", PART, REST, sent(b"x", CONTINUATION, final=False), HELLO, before=[text("one,three")]),
    broken("5.16 twice", sent(b"x", CONTINUATION, final=False), HELLO, sent(b"x", CONTINUATION)), broken("5.18 a text within", PART, HELLO),
    echoed("5.19 pauses and pings", [PART, MIDDLE, sent(b"?", PING), MIDDLE, MIDDLE, sent(b"?", PING), REST], ASK, ASK, text("one,two,two,two,three")),
    echoed("5.20 binary with a pong between", [sent(b"a", BINARY, final=False), sent(b"", PONG), sent(b"b", CONTINUATION)], ("bytes", b"ab")),
]  # fmt: skip
KOSME = "κόσμε \U00010000 \U0010ffff \ufffd \ud7ff \ue000 \u0080 \u0800"
# Kuhn's tests of decoders: stray continuations, cut sequences, longer forms, surrogates, and what is beyond Unicode.
NO_UTF8 = (
    b"\x80", b"\xbf", b"\x80\xbf", b"\xc0", b"\xc0\x20", b"\xe0\x80", b"\xf0\x80\x80", b"\xfe", b"\xff", b"\xfe\xfe\xff\xff", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf", b"\xf8\x80\x80\x80\xaf",
    b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf", b"\xc0\x80", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xed\xa0\x80\xed\xb0\x80", b"\xf4\x90\x80\x80", b"\xf7\xbf\xbf\xbf", b"\xf8\x88\x80\x80\x80",
    b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80\x65\x64\x69\x74\x65\x64")  # fmt: skip
IS_UTF8 = ("\x00", "\x7f", "\x80", "\u07ff", "\u0800", "\uffff", "\U00010000", "\U0010ffff", "\ud7ff", "\ue000", "\ufffd", "\ufeff", "\u2028")
UTF8 = [
    echoed("6.1 empty", [sent()], text("")), echoed("6.1 three empty fragments", [sent(final=False), sent(b"", CONTINUATION, final=False), sent(b"", CONTINUATION)], text("")),
    echoed("6.1 empty around", [sent(final=False), sent(b"mid", CONTINUATION, final=False), sent(b"", CONTINUATION)], text("mid")), echoed("6.2 whole", [sent(KOSME.encode())], text(KOSME)),
    *[echoed(f"6.2 cut each {size}", pieces_of(KOSME.encode(), size), text(KOSME)) for size in (1, 2, 3)],
    *[echoed(f"6.5 {one!a}", [sent(one.encode())], text(one)) for one in IS_UTF8], *[broken(f"6.3 {one!r}", sent(one), end=NO_TEXT) for one in NO_UTF8],
    *[broken(f"6.3 {one!r} in fragments", *pieces_of(b"ok " + one, 1), end=NO_TEXT) for one in NO_UTF8], broken("6.4 and more of it", sent(KOSME.encode() + b"\xf4\x90", final=False), sent(b"\x80\x80", CONTINUATION), end=NO_TEXT),
    broken("6.4 an end that is cut", sent(b"\xce"), end=NO_TEXT),
]  # fmt: skip


def closing(name: str, frames: list[bytes], code: int, *before: Heard) -> Case:
    return Case(name, frames, [*before, ("close", code)], closes=True)


CLOSES = [
    closing("7.1.1 behind a message", [HELLO, ended()], 1000, text("Hello")), closing("7.1.2 two", [ended(), ended()], 1000), closing("7.1.3 a ping behind", [ended(), sent(b"", PING)], 1000),
    closing("7.1.4 a text behind", [ended(), HELLO], 1000), closing("7.1.5 within a message", [PART, ended(), REST], 1000), closing("7.1.6 behind much", [sent(b"*" * 262_144), ended(), HELLO], 1000, text("*" * 262_144)),
    closing("7.3.1 empty", [sent(b"", CLOSE)], 1005), closing("7.3.2 one byte", [sent(b"a", CLOSE)], 1002), closing("7.3.4 a reason", [ended(1000, b"Hello")], 1000), closing("7.3.5 a long reason", [ended(1000, b"*" * 123)], 1000),
    closing("7.3.6 a reason that is too long", [b"\x88\xfe\x00\x7e" + MASK + b"*" * 126], 1002), closing("7.5.1 a reason that is no text", [ended(1000, b"\xce\xba\xed\xa0\x80")], 1007),
    *[closing(f"7.7 code {code}", [ended(code)], code) for code in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999)],
    *[closing(f"7.9 code {code}", [ended(code)], 1002) for code in (0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999)], *[closing(f"7.13 code {code}", [ended(code)], 1002) for code in (5000, 65535)],
]  # fmt: skip
MIB = 1 << 20
LIMITS = [
    *[echoed(f"9.1 text of {size}", [sent(b"*" * size)], text("*" * size)) for size in (65_536, 262_144, MIB, 4 * MIB, 16 * MIB)], *[echoed(f"9.2 binary of {size}", [sent(b"\xfe" * size, BINARY)], ("bytes", b"\xfe" * size)) for size in (MIB, 16 * MIB)],
    *[echoed(f"9.3 text in fragments of {size}", pieces_of(b"*" * MIB, size), text("*" * MIB)) for size in (256, 4096, 65_536, MIB)], *[echoed(f"9.4 binary in fragments of {size}", pieces_of(b"\xfe" * MIB, size, BINARY), ("bytes", b"\xfe" * MIB)) for size in (1024, 16_384)],
    *[echoed(f"9.7 a thousand texts of {size}", [sent(b"*" * size)] * 1000, *[text("*" * size)] * 1000) for size in (0, 16, 64, 256, 1024)], *[echoed(f"9.8 a thousand binaries of {size}", [sent(b"\xfe" * size, BINARY)] * 1000, *[("bytes", b"\xfe" * size)] * 1000) for size in (16, 1024)],
]  # fmt: skip
AUTOMATIC = [echoed("10.1 in fragments of 1300", pieces_of(b"*" * 65_536, 1300), text("*" * 65_536))]


def compressed(name: str, offer: str, sizes: Iterable[int], *, fragment: int = 0) -> Case:
    """Messages that the client deflates; the masks are those that it chose once."""
    _, _, extensions = accepted(offer)
    protocol, frames, heard = Connection(ConnectionType.CLIENT, extensions), [], []
    words = itertools.cycle(("alpha ", "beta ", "gamma ", "42 ", "κόσμε "))
    for at, size in enumerate(sizes):
        content = "".join(itertools.islice(words, size // 5 + 1))[:size]
        if fragment:
            frames += [protocol.send(TextMessage(data=content[:fragment], message_finished=False)), protocol.send(TextMessage(data=content[fragment:]))]
            heard.append(text(content))
        elif at % 3 == 2:
            frames.append(protocol.send(BytesMessage(data=content.encode())))
            heard.append(("bytes", content.encode()))
        else:
            frames.append(protocol.send(TextMessage(data=content)))
            heard.append(text(content))
    return Case(name, frames, [*heard, CLOSED], offer)


DEFLATE = "permessage-deflate"
COMPRESSION = [
    *[compressed(f"12.1 {count} messages of {size}", DEFLATE, [size] * count) for size, count in ((16, 1000), (64, 1000), (256, 500), (1024, 200), (4096, 100), (16_384, 50), (65_536, 20), (131_072, 10))],
    compressed("12.2 growing", DEFLATE, range(0, 3000, 7)), compressed("12.4 in fragments", DEFLATE, [1000] * 50, fragment=333), compressed("12.5 empty", DEFLATE, [0, 0, 1, 0]),
    *[compressed(f"13 {offer}", f"{DEFLATE}; {offer}", [16, 1024, 8192, 131_072]) for offer in (
        "server_no_context_takeover", "client_no_context_takeover", "server_max_window_bits=9", "client_max_window_bits=9", "server_no_context_takeover; client_no_context_takeover",
        "server_max_window_bits=9; server_no_context_takeover", "client_max_window_bits=15; server_max_window_bits=15")],
]  # fmt: skip

GROUPS: dict[str, list[Case]] = {
    "1 framing": FRAMING, "2 pings and pongs": PINGS, "3 reserved bits": RESERVED, "4 opcodes": OPCODES, "5 fragmentation": FRAGMENTS, "6 UTF-8": UTF8, "7 close handling": CLOSES,
    "9 limits": LIMITS, "10 automatic fragmentation": AUTOMATIC, "12 and 13 compression": COMPRESSION,
}  # fmt: skip
