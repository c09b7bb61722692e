"""What tests of TLS share: certificates, and Python's ssl as the other side over memory."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import NamedTuple

import trustme

from headgate_engine.tls.connection import TlsConnection
from headgate_engine.tls.context import TlsContext

OPEN, ENDED, FAILED = 1, 2, 3


class Pair(NamedTuple):
    """A certificate chain and its key in PEM."""

    cert: bytes
    key: bytes


CA = trustme.CA()
ROOTS = CA.cert_pem.bytes()


def pair(*names: str, **options: object) -> Pair:
    """A certificate for these names."""
    made = CA.issue_cert(*names, **options)
    return Pair(b"".join(blob.bytes() for blob in made.cert_chain_pems), made.private_key_pem.bytes())


A_TEST = pair("a.test")


def server(found: Pair = A_TEST, **options: object) -> TlsContext:
    """The context of a listener."""
    return TlsContext(server=True, cert=found.cert, key=found.key, **options)


def client(**options: object) -> TlsContext:
    """The context of a client that trusts our authority."""
    return TlsContext(server=False, **{"roots": ROOTS, **options})


def python_client(configure: Callable[[ssl.SSLContext], None] = lambda _: None) -> ssl.SSLContext:
    """The same of Python's ssl."""
    context = ssl.create_default_context(cadata=ROOTS.decode())
    configure(context)
    return context


def python_server() -> ssl.SSLContext:
    """A listener of Python's ssl."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    CA.issue_cert("a.test").configure_cert(context)
    return context


class Peer:
    """Python's ssl over memory."""

    def __init__(self, context: ssl.SSLContext, *, server_side: bool = False, session: ssl.SSLSession | None = None) -> None:
        self._input, self._output = ssl.MemoryBIO(), ssl.MemoryBIO()
        name = None if server_side else "a.test"
        self.secure = context.wrap_bio(
            self._input, self._output, server_side=server_side, server_hostname=name, session=session
        )
        self.fault: ssl.SSLError | None = None

    def feed(self, data: bytes) -> bytes:
        """Take bytes, go on with the handshake; return bytes to send."""
        if data:
            self._input.write(data)
        try:
            self.secure.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.fault = error
        return self._output.read()

    def send(self, data: bytes) -> bytes:
        self.secure.write(data)
        return self._output.read()

    def receive(self, data: bytes) -> bytes:
        """Return what encrypted bytes are."""
        self._input.write(data)
        found = b""
        try:
            while more := self.secure.read(65536):
                found += more
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass
        return found


def shake(ours: TlsConnection, peer: Peer, step: int = 1 << 20) -> bytes:
    """Do the handshake; ours gets at most `step` bytes at a time. Returns what the peer has sent and nobody has read."""
    decrypted, out = ours.feed(b"")
    for _ in range(10):
        back = peer.feed(out)
        out = b""
        for at in range(0, len(back), step):
            found, more = ours.feed(back[at : at + step])
            decrypted += found
            out += more
        if not out and not back:
            break
    return decrypted
