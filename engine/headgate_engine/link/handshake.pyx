"""TLS handshakes with clients and with backends; see handshake.pxd."""

from headgate_engine.link.secure cimport SecureTransport, shared_output
from headgate_engine.tls.connection cimport TLS_OPEN, TlsConnection
from headgate_engine.tls.context cimport KeptSession, TlsContext
from headgate_engine.tls.hello cimport HELLO_MORE, HELLO_REFUSED, ClientHello
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

import asyncio
import logging

from headgate_engine.errors import TlsError

logger = logging.getLogger("headgate.secure")

cdef enum:
    # Bytes of a client before its hello is whole.
    MOST_FIRST = 40000

# An alert that ends a handshake (RFC 8446 section 6.2): unrecognized_name.
cdef bytes NO_NAME = b"\x15\x03\x01\x00\x02\x02\x70"
# internal_error: there is a listener, and no certificate for it.
cdef bytes NO_CERTIFICATE = b"\x15\x03\x01\x00\x02\x02\x50"


cdef class SecureServer(SecureTransport):
    """The TLS of an accepted connection. port: link.protocols.Port, whose listeners and connections it asks for."""

    def __init__(self, port not None):
        self.fd = -1
        self.port = port
        self.hello = ClientHello()

    def connection_made(self, transport):
        SecureTransport.connection_made(self, transport)
        self.worker = self.port.worker
        if not self.worker.admit():
            self.settled = True
            self.worker.connection_lost(self)
            self.abort()
            return
        self.worker.connection_accepted(self)
        self.worker.timers.arm(self, self.started_ns + <int64_t>self.port.handshake_ns)

    def abort_now(self):
        self.abort()

    cdef int on_timer(self, int64_t now_ns) except -1:
        return self.failed("timeout", "the handshake took too long")

    cdef bint prepare(self, const char* p, Py_ssize_t n) except -1:
        cdef int found, kind
        if self.settled or self.awaited is not None:
            return False             # reading is paused
        if self.first is not None:
            self.first.append(p, n)
            p, n = self.first.data, self.first.length
        found = self.hello.read(<const unsigned char*>p, n)
        if found == HELLO_MORE:
            if self.first is None:
                self.first = ByteBuffer()
                self.first.append(p, n)
            if self.first.length > MOST_FIRST:
                self.failed("protocol", "a very long ClientHello")
            return False
        if found == HELLO_REFUSED:
            # Kinds of TLS records (RFC 8446 section 5.1): a client that offers nothing leaves with an alert.
            kind = <unsigned char>p[0]
            if kind == 21:
                self.failed("alert", "an alert came instead of a ClientHello")
            else:
                self.failed("protocol" if 20 <= kind <= 24 else "plain", self.hello.fault)
            return False
        self.requested_name = self.hello.server_name
        try:
            chosen = self.port.find(self.requested_name)
        except TlsError as error:
            chosen = error
        return self._choose(chosen, p, n)

    cdef bint _choose(self, object chosen, const char* p, Py_ssize_t n) except -1:
        """Go on with what Port.find() has said, or a TlsError."""
        if isinstance(chosen, TlsError):
            shared_output().append(NO_CERTIFICATE, len(NO_CERTIFICATE))
            self._flush()
            self.failed("identity", str(chosen))
            return False
        if chosen is None:
            shared_output().append(NO_NAME, len(NO_NAME))
            self._flush()
            self.failed("name", "no listener has this name")
            return False
        if not isinstance(chosen, TlsContext):
            if isinstance(chosen, asyncio.Future):
                self._await(chosen, p, n)
            else:
                self._pass_on(p, n)
            return False
        self.tls = TlsConnection(<TlsContext>chosen, shared_output())
        self.tls.take(p, n)
        return True

    cdef int _await(self, object task, const char* p, Py_ssize_t n) except -1:
        """Somebody is making the context: what has come waits, and the rest stays in the socket."""
        self.awaited = task
        if self.first is None:
            self.first = ByteBuffer()
            self.first.append(p, n)
        if self.raw is not None:
            self.raw.pause_reading()
        task.add_done_callback(self._made)
        return 0

    def _made(self, task):
        cdef ByteBuffer first = self.first
        self.awaited = None
        if self.settled or self.raw is None or self.closing:
            return
        chosen = TlsError("the certificate was not made") if task.cancelled() or task.exception() is not None else task.result()
        try:
            if self._choose(chosen, first.data, first.length):
                self.raw.resume_reading()
                self.received(first.data, first.length)
        except Exception:  # task boundary: a fault here ends this connection, never the loop
            logger.exception("TLS connection failed")
            self.abort()

    cdef int _pass_on(self, const char* p, Py_ssize_t n) except -1:
        cdef bytes data = p[:n]
        raw, self.raw = self.raw, None
        self._settle()
        protocol = self.port.passing(self.requested_name, data)
        protocol.proxied = self.proxied
        protocol.connect_head = self.connect_head
        raw.set_protocol(protocol)
        protocol.connection_made(raw)
        return 0

    cdef int _settle(self) except -1:
        self.settled = True
        self.hello = None
        self.first = None          # of what is in it, the TLS has taken a copy
        self.worker.timers.remove(self)
        self.worker.connection_lost(self)
        return 0

    cdef int _peer_ended(self, int error) except -1:
        self.cut_short = self.tls is not None and self.tls.state == TLS_OPEN
        try:
            return SecureTransport._peer_ended(self, error)
        finally:
            self.cut_short = False

    cdef int _close_now(self) except -1:
        # Most clients close without close_notify when they want nothing more. Where that ends the connection at once, an
        # alert would only meet a closed socket.
        if self.cut_short and self.raw is not None:
            self.raw.close()
            return 0
        return SecureTransport._close_now(self)

    cdef int established(self) except -1:
        approve = self.tls.context.approve
        if approve is not None:
            try:
                approve(self)
            except OSError as error:
                return self.failed("certificate", str(error))
        protocol = self.port.connection(self.tls.selected_alpn_protocol(), self.requested_name)
        protocol.proxied = self.proxied
        protocol.connect_head = self.connect_head
        self._settle()             # from here on, who counts it is the protocol
        self.set_protocol(protocol)
        protocol.connection_made(self)
        return 0

    cdef int failed(self, str reason, str detail) except -1:
        if self.settled:
            return 0
        self.settled = True
        raw = self.raw
        self.worker.connection_lost(self)
        self.worker.timers.disarm(self)
        self.port.failed(reason, detail, raw, self.requested_name)
        if raw is not None:
            self.closing = True
            raw.close()
        return 0


cdef class SecureClient(SecureTransport):
    """The TLS of a connection to a backend: the protocol of the loop's transport until `opened()` is over.

    factory makes the protocol behind it. approve(self) may refuse the peer by raising OSError.
    """

    def __init__(self, TlsContext context not None, factory, str server_name=None, bint check_name=True, approve=None,
                 KeptSession session=None):
        self.fd = -1
        self.tls = TlsConnection(context, shared_output(), server_name=server_name, check_name=check_name, session=session)
        self.requested_name = server_name
        self.factory = factory
        self.approve = approve
        self.waiter = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        SecureTransport.connection_made(self, transport)
        self.received(NULL, 0)

    async def opened(self):
        try:
            await self.waiter
        except BaseException:
            self.abort()
            raise
        finally:
            # An exception knows the frames that it went through, and they this object.
            self.waiter = None

    cdef bint _awaited(self) except -1:
        """Whether somebody still waits for the handshake."""
        return self.waiter is not None and not self.waiter.done()

    cdef bint prepare(self, const char* p, Py_ssize_t n) except -1:
        return True

    cdef int established(self) except -1:
        # Neither is needed again, and both may lead back here.
        approve, self.approve = self.approve, None
        factory, self.factory = self.factory, None
        if approve is not None:
            try:
                approve(self)
            except OSError as error:
                return self._refuse(error)
        if not self._awaited():
            self.abort()               # whoever asked for the connection does not wait any more
            return 0
        # A factory that lets the backend choose wants to know what it has chosen (link.pool Opening).
        negotiated = getattr(factory, "negotiated", None)
        if negotiated is not None:
            negotiated(self.tls.selected_alpn_protocol())
        protocol = factory()
        self.set_protocol(protocol)
        protocol.connection_made(self)
        if self._awaited():
            self.waiter.set_result(None)
        return 0

    cdef int failed(self, str reason, str detail) except -1:
        if self.protocol is not None:
            return 0
        return self._refuse(ConnectionError(f"TLS: {detail}") if reason == "closed" else HandshakeError(f"TLS: {detail}"))

    cdef int _refuse(self, error) except -1:
        self.factory = self.approve = None
        if self._awaited():
            self.waiter.set_exception(error)
        self.abort()
        return 0


class HandshakeError(ConnectionError):
    """A backend's TLS was not accepted, or it did not accept ours."""
