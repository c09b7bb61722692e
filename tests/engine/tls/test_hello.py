"""The first message of a TLS client."""

from __future__ import annotations

import ssl

import pytest

from headgate_drivers.tls import read_hello
from headgate_engine.tls.hello import ClientHello

MORE, WHOLE, REFUSED = 0, 1, 2


def hello(name: str | None = "a.test", version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    """What Python's ssl sends first."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.maximum_version = version
    out = ssl.MemoryBIO()
    secure = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        secure.do_handshake()
    return out.read()


def records(message: bytes, size: int) -> bytes:
    """The same message in records of `size` bytes."""
    return b"".join(
        b"\x16\x03\x01" + len(message[at : at + size]).to_bytes(2, "big") + message[at : at + size]
        for at in range(0, len(message), size)
    )


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("name", [None, "a.test", "Mixed.Case.TEST", "x" * 63 + ".test"])
def test_the_server_name(name: str | None, version: ssl.TLSVersion) -> None:
    data = hello(name, version)
    found = ClientHello()
    assert read_hello(found, data) == WHOLE
    assert found.server_name == (None if name is None else name.lower())
    assert found.fault is None


def test_every_cut_and_every_size_of_records() -> None:
    data = hello()
    found = ClientHello()
    for end in range(len(data)):
        assert read_hello(found, data[:end]) == MORE, end
    assert read_hello(found, data) == WHOLE
    assert found.server_name == "a.test"
    for size in range(1, 40):
        found = ClientHello()
        assert read_hello(found, records(data[5:], size)) == WHOLE
        assert found.server_name == "a.test"
    # What comes behind it is not looked at.
    assert read_hello(ClientHello(), data + b"\x17\x03\x03") == WHOLE


def built(extensions: bytes, head: bytes = b"\x03\x03" + bytes(32), middle: bytes = b"\0\0\2\x13\x01\1\0") -> bytes:
    """A ClientHello in one record."""
    body = head + middle + (len(extensions).to_bytes(2, "big") + extensions)
    return records(b"\1" + len(body).to_bytes(3, "big") + body, 16384)


def named(name: bytes, kind: int = 0) -> bytes:
    entry = bytes((kind,)) + len(name).to_bytes(2, "big") + name
    data = len(entry).to_bytes(2, "big") + entry
    return b"\0\0" + len(data).to_bytes(2, "big") + data


CASES = {
    "http": (b"GET / HTTP/1.1\r\n", "the client does not speak TLS"),
    "another record": (b"\x17\x03\x03\0\x01\0", "the client does not speak TLS"),
    "an empty record": (b"\x16\x03\x01\0\0", "the client does not speak TLS"),
    "a record that is too long": (b"\x16\x03\x01\x40\x01", "the client does not speak TLS"),
    "another version": (b"\x16\x02\x01\0\x05\1\0\0\1\0", "the client does not speak TLS"),
    "another message": (records(b"\2\0\0\1\0", 100), "no ClientHello, or a very long one"),
    "a very long message": (records(b"\1\1\0\0\0", 100), "no ClientHello, or a very long one"),
    "cut within its random": (records(b"\1\0\0\5" + bytes(5), 100), "malformed ClientHello"),
    "a session id beyond its end": (records(b"\1\0\0\x23\x03\x03" + bytes(32) + b"\xff", 100), "malformed ClientHello"),
    "extensions that are too short": (built(b"")[:-2] + b"\0\1", "malformed ClientHello"),
    "half an extension": (built(b"\0\0\0"), "malformed ClientHello"),
    "an extension beyond the end": (built(b"\0\0\0\x09\0"), "malformed ClientHello"),
    "an empty name": (built(named(b"")), "malformed server name"),
    "a name of another kind": (built(named(b"a.test", 1)), "malformed server name"),
    "a name with a zero": (built(named(b"a\0.test")), "malformed server name"),
    "a name with a slash": (built(named(b"a/b")), "malformed server name"),
    "a name beyond ASCII": (built(named("ä.test".encode())), "malformed server name"),
    "a very long name": (built(named(b"a" * 256)), "malformed server name"),
    "a list that is too short": (built(b"\0\0\0\6\0\3\0\0\1a"), "malformed server name"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_refused(case: str) -> None:
    data, fault = CASES[case]
    found = ClientHello()
    assert read_hello(found, data) == REFUSED
    assert found.fault == fault


def test_what_has_no_name() -> None:
    for data in (built(b""), built(b"\0\x0a\0\0"), records(b"\1\0\0\x29\x03\x03" + bytes(32) + b"\0\0\2\x13\1\1\0", 100)):
        found = ClientHello()
        assert (read_hello(found, data), found.server_name) == (WHOLE, None)
