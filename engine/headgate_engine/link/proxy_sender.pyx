"""PROXY protocol headers for backends; see proxy_sender.pxd."""

from headgate_engine.link.face cimport ClientFace
from headgate_engine.link.pool cimport ClientPools, Pool
from headgate_engine.link.secure cimport SecureTransport
from headgate_engine.tls.library cimport openssl

import socket
import struct

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"

cdef enum:
    V1 = 1
    # Version and command of version 2.
    LOCAL = 0x20
    PROXY = 0x21
    # Families of addresses, with their protocol.
    UNSPECIFIED = 0x00
    TCP4 = 0x11
    TCP6 = 0x21
    # Types of extensions, section 2.2, and of what the one for TLS holds.
    TLV_ALPN = 0x01
    TLV_AUTHORITY = 0x02
    TLV_SSL = 0x20
    TLV_SSL_VERSION = 0x21
    TLV_SSL_CN = 0x22
    TLV_SSL_CIPHER = 0x23
    CLIENT_SSL = 0x01
    CLIENT_CERT_CONN = 0x02
    CLIENT_CERT_SESS = 0x04
    # Bytes of a header behind its first 16: more than this is refused by some (by us as well).
    MOST_BLOCK = 512

# An address in front of which an IPv4 one stands as one of IPv6 (RFC 4291 section 2.5.5.2).
cdef bytes MAPPED = bytes(10) + b"\xff\xff"


def header(int version, tuple source=None, tuple destination=None, extensions=()):
    """Return a header. source, destination: host and port of the client and of what it connected to. extensions: (type,
    value) of version 2; those that do not fit any more are left out.

    Without both addresses, or where they are not of IP, it says that nothing is known of the client (section 2.1
    `UNKNOWN`, section 2.2 `LOCAL`).
    """
    cdef bytes there = None if source is None else _packed(source[0])
    cdef bytes here = None if destination is None else _packed(destination[0])
    cdef bytes block, more
    if there is None or here is None:
        return b"PROXY UNKNOWN\r\n" if version == V1 else SIGNATURE + struct.pack("!BBH", LOCAL, UNSPECIFIED, 0)
    if len(there) != len(here):
        there, here = _as_ipv6(there), _as_ipv6(here)
    if version == V1:
        family = socket.AF_INET if len(there) == 4 else socket.AF_INET6
        hosts = f"{socket.inet_ntop(family, there)} {socket.inet_ntop(family, here)}"
        return f"PROXY TCP{4 if len(there) == 4 else 6} {hosts} {source[1]} {destination[1]}\r\n".encode("ascii")
    block = there + here + struct.pack("!HH", source[1], destination[1])
    for kind, value in extensions:
        more = _extension(kind, value)
        if len(block) + len(more) <= MOST_BLOCK:
            block += more
    return SIGNATURE + struct.pack("!BBH", PROXY, TCP4 if len(there) == 4 else TCP6, len(block)) + block


cdef bytes _packed(str host):
    """The bytes of an address; None for what is none."""
    try:
        if ":" in host:
            return socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
        return socket.inet_pton(socket.AF_INET, host)
    except OSError:
        return None


cdef bytes _as_ipv6(bytes address):
    return address if len(address) == 16 else MAPPED + address


cdef bytes _extension(int kind, bytes value):
    return struct.pack("!BH", kind, len(value)) + value


cdef list extensions_of(ClientFace face):
    """What is known of a client beside its addresses: the name in its TLS handshake, its protocol and its certificate."""
    cdef SecureTransport secure = face.wire.tls
    cdef list found = []
    name = face.server_name
    if name:
        found.append((TLV_AUTHORITY, name.encode("ascii", "replace")))
    if secure is None:
        return found
    found.append((TLV_SSL, _of_tls(secure)))
    alpn = secure.selected_alpn_protocol()
    if alpn:
        found.append((TLV_ALPN, alpn.encode("ascii", "replace")))
    return found


cdef bytes _of_tls(SecureTransport secure):
    """The value of the extension for TLS: flags, whether a certificate was verified (0), version, cipher suite and name."""
    cdef int flags = CLIENT_SSL
    cdef bytes parts = _extension(TLV_SSL_VERSION, (secure.version() or "").encode("ascii"))
    cdef const void* cipher = NULL if secure.tls is None or secure.tls.ssl == NULL else openssl.SSL_get_current_cipher(
        secure.tls.ssl)
    identity = secure.peer_identity()
    if cipher != NULL:
        parts += _extension(TLV_SSL_CIPHER, <bytes>openssl.SSL_CIPHER_get_name(cipher))
    if identity is not None:
        # A resumed session is that of a connection on which the certificate was shown.
        flags |= CLIENT_CERT_SESS if secure.tls.resumed else CLIENT_CERT_SESS | CLIENT_CERT_CONN
        if identity.subject_cn:
            parts += _extension(TLV_SSL_CN, identity.subject_cn.encode("utf-8"))
    return struct.pack("!BI", flags, identity is None) + parts


cdef class ProxySender(ClientPools):
    def __init__(self, int version, open not None):
        if version not in (1, 2):
            raise ValueError("there is no such version")
        self.version = version
        self.open = open

    cdef Pool pool_of(self, Pool pool, object connection):
        cdef ClientFace face
        cdef dict own
        cdef Pool found
        if not isinstance(connection, ClientFace):
            return pool               # a call of our own
        face = <ClientFace>connection
        own = face.own_pools
        if own is not None:
            found = own.get(pool)
            if found is not None:
                return found
        found = <Pool?>self.open(self.header_for(face))
        if face.transport is None:
            found.close()             # the client has left: it ends with the call
            return found
        # Those of places that a new configuration does not have any more are not asked for again.
        for other in [] if own is None else [other for other in own if (<Pool>other).closed]:
            own.pop(other).close()
        if face.own_pools is None:
            face.own_pools = {}
        face.own_pools[pool] = found
        return found

    cdef bytes header_for(self, ClientFace face):
        return header(
            self.version, (face.peer_host, face.peer_port), face.reached, extensions_of(face) if self.version != V1 else ())
