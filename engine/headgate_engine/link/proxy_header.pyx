"""PROXY protocol headers; see proxy_header.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.link.timers cimport Timer
from headgate_engine.link.worker cimport Worker
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t
from libc.string cimport memchr, memcmp

from headgate_engine.link.addresses import address_of

import ipaddress
import logging

logger = logging.getLogger("headgate.downstream")

cdef const char* SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
cdef const char* TEXT = b"PROXY "

cdef enum:
    SIGNATURE_LENGTH = 12
    TEXT_LENGTH = 6

# How long a header may take.
cdef int64_t HEADER_NS = 5000000000
# Addresses of version 2 by its family and protocol, and where they end: an address and a port on either side.
cdef dict FAMILIES = {0x11: 12, 0x21: 36}
# A Unix socket has no address that anybody could use, and with an unspecified family there is none.
cdef frozenset WITHOUT = frozenset((0x00, 0x31))


cdef class ProxyRules:
    def __init__(self, bint v1, bint v2, bint strict):
        self.versions = (ACCEPT_V1 if v1 else 0) | (ACCEPT_V2 if v2 else 0)
        self.strict = strict


cdef class ProxyAddresses:
    def __init__(self, str host not None, int port, str raw_host not None, int raw_port, identity=None,
                 tuple destination=None):
        self.host = host
        self.port = port
        self.raw_host = raw_host
        self.raw_port = raw_port
        self.identity = identity
        self.destination = destination


cdef class ProxyHeader:
    def __init__(self, bint v1=True, bint v2=True):
        self.versions = (ACCEPT_V1 if v1 else 0) | (ACCEPT_V2 if v2 else 0)

    cdef int read(self, const unsigned char* p, Py_ssize_t n) except -1:
        if n == 0:
            return PROXY_MORE
        if p[0] == c'P':
            return self._read_text(p, n)
        if memcmp(p, SIGNATURE, min(n, SIGNATURE_LENGTH)) != 0:
            return PROXY_NONE
        return PROXY_MORE if n < SIGNATURE_LENGTH else self._read_block(p, n)

    cdef int _refuse(self, str fault) except -1:
        self.fault = fault
        return PROXY_REFUSED

    cdef int _read_text(self, const unsigned char* p, Py_ssize_t n) except -1:
        """Version 1: `PROXY TCP4 <source> <destination> <source port> <destination port>` and the end of a line."""
        cdef const unsigned char* end
        if memcmp(p, TEXT, min(n, TEXT_LENGTH)) != 0:
            return PROXY_NONE
        if n < TEXT_LENGTH:
            return PROXY_MORE
        if not self.versions & ACCEPT_V1:
            return self._refuse("version 1 is not accepted")
        end = <const unsigned char*>memchr(p, c'\n', min(n, MOST_TEXT))
        if end == NULL:
            return PROXY_MORE if n < MOST_TEXT else self._refuse("a line that is too long")
        self.length = end - p + 1
        if end[-1] != c'\r':
            return self._refuse("a line that ends without a carriage return")
        words = (<const char*>p)[TEXT_LENGTH:self.length - 2].split(b" ")
        if words[0] == b"UNKNOWN":
            return PROXY_WHOLE           # whatever follows it
        if len(words) != 5 or words[0] not in (b"TCP4", b"TCP6"):
            return self._refuse("a malformed line")
        kind = ipaddress.IPv4Address if words[0] == b"TCP4" else ipaddress.IPv6Address
        try:
            host, here = (kind(word.decode("ascii")) for word in words[1:3])
            self.port, port = (_port(word) for word in words[3:5])
        except ValueError:
            return self._refuse("a malformed address")
        self.host = _shown(host)
        self.destination = (_shown(here), port)
        return PROXY_WHOLE

    cdef int _read_block(self, const unsigned char* p, Py_ssize_t n) except -1:
        """Version 2: signature, version and command, family and protocol, length, addresses, extensions."""
        cdef Py_ssize_t block, size, address
        cdef int command, family
        if not self.versions & ACCEPT_V2:
            return self._refuse("version 2 is not accepted")
        if n < HEAD_V2:
            return PROXY_MORE
        command, family, block = p[12] & 0x0F, p[13], (p[14] << 8) + p[15]
        if p[12] >> 4 != 2 or command > 1:
            return self._refuse("an unknown version or command")
        if block > MOST_BLOCK:
            return self._refuse("a header that is too long")
        if n < HEAD_V2 + block:
            return PROXY_MORE
        self.length = HEAD_V2 + block
        if command == 0 or family in WITHOUT:
            return PROXY_WHOLE           # of the proxy itself: its health checks
        size = FAMILIES.get(family, 0)
        if size == 0:
            return self._refuse("an unknown family or protocol")
        if block < size:
            return self._refuse("a header without all of its addresses")
        address = (size - 4) // 2
        p += HEAD_V2
        self.host = _shown(ipaddress.ip_address((<const char*>p)[:address]))
        self.port = (p[size - 4] << 8) + p[size - 3]
        self.destination = (
            _shown(ipaddress.ip_address((<const char*>p)[address:2 * address])), (p[size - 2] << 8) + p[size - 1])
        return PROXY_WHOLE


def _port(bytes word):
    """Return the number of a port as version 1 writes it. Raises ValueError."""
    if not word.isdigit() or len(word) > 5 or word != b"%d" % int(word) or int(word) > 65535:
        raise ValueError("no port")
    return int(word)


def _shown(address):
    """Return an address as those of sockets are shown."""
    mapped = getattr(address, "ipv4_mapped", None)
    return str(address if mapped is None else mapped)


cdef class ProxyFront(Timer):
    def __init__(self, port not None, ProxyRules rules not None):
        self.port = port
        self.worker = <Worker?>port.worker
        self.rules = rules
        self.header = ProxyHeader(bool(rules.versions & ACCEPT_V1), bool(rules.versions & ACCEPT_V2))
        self.first = ByteBuffer()

    # -- asyncio.BufferedProtocol ------------------------------------------------------------------------------------
    def connection_made(self, transport):
        self.transport = transport
        if not self.worker.admit():
            self._end(None)
            return
        self.worker.connection_accepted(self)
        self.worker.timers.arm(self, monotonic_ns() + HEADER_NS)

    def get_buffer(self, sizehint):
        return self.worker.scratch_view

    def buffer_updated(self, Py_ssize_t n):
        cdef int found
        if self.transport is None:
            return
        try:
            self.first.append(self.worker.scratch, n)
            found = self.header.read(<const unsigned char*>self.first.data, self.first.length)
            if found == PROXY_REFUSED:
                self._end(self.header.fault)
            elif found == PROXY_NONE and self.rules.strict:
                self._end("there is none")
            elif found != PROXY_MORE:
                self._go_on()
        except Exception:  # task boundary: a fault here ends this connection, never the loop
            logger.exception("client connection failed")
            self._end("internal error")

    def eof_received(self):
        if self.transport is None:
            return False
        if self.rules.strict or self.first.length == 0:
            self._end("the connection ended before it")
            return False
        transport = self.transport
        self._go_on()
        return bool(transport.get_protocol().eof_received())

    def connection_lost(self, exc):
        self.transport = None
        self.worker.timers.remove(self)
        self.worker.connection_lost(self)

    def pause_writing(self):
        """Nothing is written."""

    def resume_writing(self):
        """Nothing is written."""

    def abort_now(self):
        self._end(None)

    cdef int on_timer(self, int64_t now_ns) except -1:
        # Who waits for us to speak first sends nothing, and need not send a header.
        return self._end("it took too long") if self.rules.strict else self._go_on()

    cdef int _go_on(self) except -1:
        """What comes behind the header belongs to another protocol."""
        cdef bytes rest = self.first.take()[self.header.length:]
        cdef Py_ssize_t at = 0, part
        transport, self.transport = self.transport, None
        self.worker.timers.remove(self)
        self.worker.connection_lost(self)
        protocol = self.port.behind()
        if self.header.host is not None:
            protocol.proxied = ProxyAddresses(
                self.header.host, self.header.port, *address_of(transport, "peername"), destination=self.header.destination)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        # A protocol may have handed the connection to another one by then.
        while at < len(rest) and not transport.is_closing():
            protocol = transport.get_protocol()
            buffer = protocol.get_buffer(len(rest) - at)
            part = min(<Py_ssize_t>len(buffer), len(rest) - at)
            buffer[:part] = rest[at:at + part]
            at += part
            protocol.buffer_updated(part)
        return 0

    cdef int _end(self, str fault) except -1:
        """Close the connection. fault: what is wrong with its header; None: nothing."""
        transport = self.transport
        if transport is None:
            return 0
        if fault is not None:
            self.port.unproxied(fault, transport)
        transport.abort()
        return 0
