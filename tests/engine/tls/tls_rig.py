"""What tests of TLS share: certificates, and Python's ssl as the other side over memory."""

from __future__ import annotations

import _ssl
import contextlib
import ctypes
import hmac
import ssl
from collections.abc import Callable
from typing import NamedTuple

import trustme
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from headgate_drivers.tls import feed
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
        self.ended = False  # the other side has sent close_notify

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
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        return found

    def goodbye(self) -> bytes:
        """Return a close_notify."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.secure.unwrap()
        return self._output.read()


LIBRARY = ctypes.CDLL(getattr(_ssl, "__file__", None))
for _name, _result in {
    "TLS_client_method": ctypes.c_void_p, "SSL_CTX_new": ctypes.c_void_p, "SSL_new": ctypes.c_void_p,
    "BIO_s_mem": ctypes.c_void_p, "BIO_new": ctypes.c_void_p, "ERR_peek_error": ctypes.c_ulong, "SSL_get_session": ctypes.c_void_p,
    "SSL_get_client_random": ctypes.c_size_t, "SSL_get_server_random": ctypes.c_size_t, "SSL_SESSION_get_master_key": ctypes.c_size_t,
}.items():  # fmt: skip
    getattr(LIBRARY, _name).restype = _result


def leave_a_fault() -> None:
    """What other code of this thread does that does not empty the library's list of errors."""
    LIBRARY.ERR_new()
    LIBRARY.ERR_set_error(20, 100, None)
    assert LIBRARY.ERR_peek_error()


class OddClient:
    """A client over memory that says what Python's ssl cannot: it asks for new keys, and begins handshakes anew.

    old: TLS 1.2 with AES-128-GCM.
    """

    def __init__(self, *, old: bool = False) -> None:
        self._context = ctypes.c_void_p(LIBRARY.SSL_CTX_new(ctypes.c_void_p(LIBRARY.TLS_client_method())))
        if old:
            LIBRARY.SSL_CTX_ctrl(self._context, 124, 0x0303, None)  # SSL_CTX_set_max_proto_version(3)
            LIBRARY.SSL_CTX_set_cipher_list(self._context, b"ECDHE-ECDSA-AES128-GCM-SHA256")
        self._sent = 1  # the Finished of the handshake
        self._ssl = ctypes.c_void_p(LIBRARY.SSL_new(self._context))
        memory = ctypes.c_void_p(LIBRARY.BIO_s_mem())
        self._input, self._output = (ctypes.c_void_p(LIBRARY.BIO_new(memory)) for _ in range(2))
        LIBRARY.SSL_set_bio(self._ssl, self._input, self._output)
        LIBRARY.SSL_set_connect_state(self._ssl)

    def _written(self) -> bytes:
        room = ctypes.create_string_buffer(65536)
        found = b""
        while (size := LIBRARY.BIO_read(self._output, room, len(room))) > 0:
            found += room.raw[:size]
        return found

    def feed(self, data: bytes) -> bytes:
        """Take bytes, go on with the handshake; return bytes to send."""
        LIBRARY.BIO_write(self._input, data, len(data))
        LIBRARY.SSL_do_handshake(self._ssl)
        return self._written()

    @property
    def open(self) -> bool:
        """Whether the handshake is over."""
        return bool(LIBRARY.SSL_is_init_finished(self._ssl))

    def update(self) -> bytes:
        """Return a message that asks the peer for new keys."""
        assert LIBRARY.SSL_key_update(self._ssl, 1) == 1
        assert LIBRARY.SSL_do_handshake(self._ssl) == 1
        return self._written()

    def hello(self) -> bytes:
        """Return the beginning of another handshake within the connection, which is `old` (RFC 5246 section 7.4.1.1)."""
        client, server, master = (ctypes.create_string_buffer(size) for size in (32, 32, 48))
        LIBRARY.SSL_get_client_random(self._ssl, client, ctypes.c_size_t(32))
        LIBRARY.SSL_get_server_random(self._ssl, server, ctypes.c_size_t(32))
        LIBRARY.SSL_SESSION_get_master_key(ctypes.c_void_p(LIBRARY.SSL_get_session(self._ssl)), master, ctypes.c_size_t(48))
        keys = _expanded(master.raw, b"key expansion" + server.raw + client.raw, 40)
        number = self._sent.to_bytes(8, "big")
        self._sent += 1
        text = b"\1\0\0\0"
        about = number + b"\x16\3\3" + len(text).to_bytes(2, "big")
        sealed = AESGCM(keys[:16]).encrypt(keys[32:36] + number, text, about)  # RFC 5288
        return b"\x16\3\3" + (8 + len(sealed)).to_bytes(2, "big") + number + sealed

    def read(self, data: bytes) -> bytes:
        """Return what encrypted bytes are."""
        LIBRARY.BIO_write(self._input, data, len(data))
        room = ctypes.create_string_buffer(65536)
        found = b""
        while (size := LIBRARY.SSL_read(self._ssl, room, len(room))) > 0:
            found += room.raw[:size]
        return found

    def close(self) -> None:
        """Free it."""
        LIBRARY.SSL_free(self._ssl)
        LIBRARY.SSL_CTX_free(self._context)


def _expanded(secret: bytes, seed: bytes, size: int) -> bytes:
    """P_SHA256 of RFC 5246 section 5."""
    found, link = b"", seed
    while len(found) < size:
        link = hmac.digest(secret, link, "sha256")
        found += hmac.digest(secret, link + seed, "sha256")
    return found[:size]


def shake(ours: TlsConnection, peer: Peer, step: int = 1 << 20) -> bytes:
    """Do the handshake; ours gets at most `step` bytes at a time. Returns what the peer has sent and nobody has read."""
    decrypted, out = feed(ours, b"")
    for _ in range(10):
        back = peer.feed(out)
        out = b""
        for at in range(0, len(back), step):
            found, more = feed(ours, back[at : at + step])
            decrypted += found
            out += more
        if not out and not back:
            break
    return decrypted
