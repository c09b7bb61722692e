"""Whatever a client sends first: the server name is the one that OpenSSL finds, wherever the bytes are cut, and a connection
that is fed with them ends in one of its states."""

from __future__ import annotations

import random
import ssl
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz"), str(ROOT)]

from harness import corpus, mutated, run  # noqa: E402
from tests.engine.tls.tls_rig import CA, server  # noqa: E402

from headgate_drivers.tls import feed, read_hello  # noqa: E402
from headgate_engine.tls.connection import TlsConnection  # noqa: E402
from headgate_engine.tls.hello import ClientHello  # noqa: E402

MORE, WHOLE, REFUSED = 0, 1, 2
PIECES = [b"\x16\x03\x01", b"\x16", b"\1\0\0", b"\x03\x03", b"\0\0", b"\0", b"\xff", b"a.test", b"A", b"\0\x09\0\0\6a.test",
          b"\0\x2b", b"\x13\x01", b"\0\1"]  # fmt: skip
OURS = server(alpn=(b"h2", b"http/1.1"))
ORACLE = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
CA.issue_cert("a.test").configure_cert(ORACLE)
# Names that are no text do not reach the callback: Python prints that, and goes on.
sys.unraisablehook = lambda _: None
seen: list[str | None] = []
ORACLE.sni_callback = lambda _connection, name, _context: seen.append(name)


def by_openssl(data: bytes) -> list[str | None]:
    """The names that OpenSSL finds: one, or none if it does not take the message."""
    seen.clear()
    given = ssl.MemoryBIO()
    given.write(data)
    try:
        ORACLE.wrap_bio(given, ssl.MemoryBIO(), server_side=True).do_handshake()
    except (ssl.SSLError, UnicodeError):
        pass
    return list(seen)


def check(data: bytes, source: random.Random) -> None:
    """One input: whole, and growing from cut to cut."""
    found = ClientHello()
    state = read_hello(found, data)
    assert (state == REFUSED) == (found.fault is not None)
    oracle = by_openssl(data)
    if oracle and state != REFUSED:
        # OpenSSL takes some names that no listener can have.
        assert state == WHOLE
        assert found.server_name == (None if oracle[0] is None else oracle[0].lower()), (found.server_name, oracle)
    growing = ClientHello()
    last = MORE
    for end in sorted({*(source.randint(0, len(data)) for _ in range(source.randint(0, 8))), len(data)}):
        last = read_hello(growing, data[:end])
        if last != MORE:
            break
    if last != MORE:
        assert (last, growing.server_name) == (state, found.server_name)
    connection = TlsConnection(OURS)
    for _ in range(2):
        feed(connection, data)
    assert connection.state in (0, 3)


CORPUS = corpus(__file__, "corpus_hello")


def make(source: random.Random) -> bytes:
    """A hello with some places changed."""
    return mutated(source.choice(CORPUS), PIECES, source)


if __name__ == "__main__":
    run(__doc__, make, check, CORPUS)
