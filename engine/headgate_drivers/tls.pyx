"""The TLS of a connection without a transport, what comes in front of it, and keys of tickets at a time of the test's own."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t

from headgate_engine.link.proxy_header cimport ProxyHeader
from headgate_engine.link.secure cimport SecureTransport
from headgate_engine.tls.connection cimport TLS_OPEN, TlsConnection
from headgate_engine.tls.context cimport KeptSession
from headgate_engine.tls.hello cimport ClientHello
from headgate_engine.tls.library cimport openssl
from headgate_engine.tls.tickets cimport TicketKeys

cdef enum:
    READ_SIZE = 16384


def feed(TlsConnection tls not None, const unsigned char[::1] data not None):
    """Take what the network has brought; return (decrypted bytes, bytes to send)."""
    cdef bytes into
    cdef Py_ssize_t n
    if tls.ssl == NULL:
        raise ValueError("no connection")
    tls.take(<const char*>&data[0] if data.shape[0] else NULL, data.shape[0])
    tls.handshake()
    found = []
    try:
        while tls.state == TLS_OPEN and tls.unread():
            into = PyBytes_FromStringAndSize(NULL, READ_SIZE)
            n = tls.read(PyBytes_AS_STRING(into), READ_SIZE)
            if n == 0:
                break
            found.append(into[:n])
    finally:
        tls.take(NULL, 0)
    return b"".join(found), tls.out.take()


def send(TlsConnection tls not None, const unsigned char[::1] data not None):
    """Encrypt; return bytes to send. Raises ValueError where nothing can be sent."""
    if tls.ssl == NULL or not tls.write(<const char*>&data[0] if data.shape[0] else NULL, data.shape[0]):
        raise ValueError("nothing can be sent")
    return tls.out.take()


def finish(TlsConnection tls not None):
    """Return the bytes that end our half."""
    tls.end()
    return b"" if tls.out is None else tls.out.take()


def session_reused(SecureTransport transport not None):
    return transport.tls is not None and transport.tls.resumed


def key_names(TicketKeys keys not None):
    return keys.current.name[:16], keys.previous.name[:16]


def move_keys(TicketKeys keys not None, int64_t now_s):
    keys.advance(now_s)


def read_proxy_header(ProxyHeader header not None, const unsigned char[::1] data not None):
    return header.read(&data[0] if data.shape[0] else NULL, data.shape[0])


def read_hello(ClientHello hello not None, const unsigned char[::1] data not None):
    return hello.read(&data[0] if data.shape[0] else NULL, data.shape[0])


def cipher_suite(TlsConnection tls not None):
    cdef const void* found = NULL if tls.ssl == NULL else openssl.SSL_get_current_cipher(tls.ssl)
    return None if found == NULL else (<bytes>openssl.SSL_CIPHER_get_name(found)).decode("ascii")


def is_resumable(KeptSession kept not None):
    return kept.session != NULL
