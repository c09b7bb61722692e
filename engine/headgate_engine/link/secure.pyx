"""TLS over a transport of the loop; see secure.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.link.contract cimport WRITE_DONE, WRITE_FAILED, WRITE_QUEUED
from headgate_engine.link.reads cimport Readable
from headgate_engine.link.worker cimport Worker
from headgate_engine.tls.connection cimport TLS_ENDED, TLS_FAILED, TLS_HANDSHAKE, TLS_OPEN, TlsConnection
from headgate_engine.wire.buffer cimport ByteBuffer

from cpython.buffer cimport PyBUF_WRITE
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.errno cimport EAGAIN, ECONNRESET, EINTR, EPROTO, errno
from libc.stdlib cimport malloc

import asyncio
import logging

logger = logging.getLogger("headgate.secure")

cdef extern from "<sys/socket.h>" nogil:
    ssize_t send(int fd, const void* data, size_t n, int flags)
    int MSG_NOSIGNAL
    int MSG_DONTWAIT

cdef enum:
    # As a worker's scratch memory.
    SIZE = 65536
    # The longest record (RFC 8446 section 5.1).
    RECORD = 16384
    # What is encrypted at a time: a few records, whose encrypted form ByteBuffer keeps memory for.
    PIECE = 98304
    # Most that is encrypted in one turn of the loop: 0.6 ms. The rest follows in later turns.
    SLICE = 1048576
    # Bytes that the library answers by itself (to changes of keys and renegotiations) while nothing leaves: 2,500 answers.
    MOST_ANSWERS = 65536

# Memory that is in use for the length of one call only, and so by one connection at a time: a process has one loop.
cdef char* encrypted = <char*>malloc(SIZE)     # what the loop has read
cdef char* plain = <char*>malloc(SIZE)         # what was read, decrypted
cdef ByteBuffer output = ByteBuffer()          # what leaves next
if encrypted == NULL or plain == NULL:
    raise MemoryError()
cdef object encrypted_view = PyMemoryView_FromMemory(encrypted, SIZE, PyBUF_WRITE)


cdef ByteBuffer shared_output():
    return output


cdef class SecureTransport(Readable):
    # -- asyncio.BufferedProtocol of the loop's transport --------------------------------------------------------------
    def connection_made(self, transport):
        self.raw = transport
        self.started_ns = monotonic_ns()
        # Limits of zero: pause_writing/resume_writing then mean "something is queued" and "nothing is".
        transport.set_write_buffer_limits(high=0)
        # Within another TLS, bytes go through that one. The loop has set TCP_NODELAY.
        sock = None if isinstance(transport, SecureTransport) else transport.get_extra_info("socket")
        if sock is not None:
            self.fd = sock.fileno()

    def get_buffer(self, sizehint):
        return encrypted_view

    def buffer_updated(self, Py_ssize_t n):
        if not 0 <= n <= SIZE:
            raise ValueError("more than the buffer holds")
        self.received(encrypted, n)
        self._read_by_loop()

    def eof_received(self):
        self._peer_ended(0)
        return False

    def connection_lost(self, exc):
        protocol, self.protocol = self.protocol, None
        self.unencrypted = None
        self.lost = True
        self.closing = True
        if self.worker is not None:
            self.worker.reads.remove(self)
            self.worker.timers.remove(self)
        self.fd = -1
        self.reader = None
        if protocol is not None:
            protocol.connection_lost(exc)
        else:
            self.failed("closed", "the connection ended" if exc is None else str(exc))
        self.raw = None

    def pause_writing(self):
        self.queued = True
        if self.protocol is not None and self.unencrypted is None:
            self.protocol.pause_writing()

    def resume_writing(self):
        self.queued = False
        self.answered = 0
        if self.unencrypted is not None:
            self._go_on_later()
        elif self.protocol is not None:
            self.protocol.resume_writing()

    # -- reading -------------------------------------------------------------------------------------------------------
    cdef int attach(self, Readable reader, Worker worker) except -1:
        self.reader = reader
        self.worker = worker
        return 0

    cdef int _read_by_loop(self) except -1:
        """Behind a read of the loop's transport: the next one is ours."""
        if self.reader is not None and not self.own_reads and not self.reading_paused and not self.closing and (
                self.fd >= 0 and not self.ended):
            self.own_reads = True
            self.raw.pause_reading()
            self.worker.reads.add(self, self.fd)
        return 0

    cdef int on_bytes(self, Py_ssize_t n) except -1:
        return self.received(self.worker.scratch, n)

    cdef int on_end(self, int error) except -1:
        return self._peer_ended(error)

    cdef int received(self, const char* p, Py_ssize_t n) except -1:
        """Uses up what has come, and hands on what it was."""
        cdef TlsConnection tls = self.tls
        cdef Py_ssize_t found
        cdef int state
        try:
            if tls is None:
                if not self.prepare(p, n):
                    return 0
                tls = self.tls
            else:
                tls.take(p, n)
            if tls.state == TLS_HANDSHAKE:
                state = tls.handshake()
                self._answer()
                if state == TLS_FAILED:
                    return self.failed(tls.reason, tls.fault)
                if state == TLS_HANDSHAKE or self.closing:
                    return 0
                self.handshake_ns = monotonic_ns() - self.started_ns
                self.established()
            while not self.closing and tls.state == TLS_OPEN and tls.unread():
                found = tls.read(plain, SIZE)
                if output.length:
                    self._answer()           # an alert, or the answer to a change of keys
                if found == 0:
                    break
                self._deliver(plain, found)
            if tls.state == TLS_ENDED:
                return self._peer_ended(0)
            if tls.state == TLS_FAILED and not self.closing:
                logger.debug("TLS failed", extra={"error": tls.fault})
                return self._peer_ended(EPROTO)
        except Exception:  # task boundary: a fault here ends this connection, never the loop
            logger.exception("TLS connection failed")
            output.clear()
            self.abort()
        finally:
            if tls is not None:
                tls.take(NULL, 0)
        return 0

    cdef int _answer(self) except -1:
        """Send what the library itself says. A peer that makes it speak and reads nothing must not fill the memory."""
        cdef Py_ssize_t size = output.length
        self._flush()
        if self.queued:
            self.answered += size
            if self.answered > MOST_ANSWERS:
                logger.warning("TLS connection ended: the peer wants answers and does not read them")
                self.abort()
        return 0

    cdef int _deliver(self, char* p, Py_ssize_t n) except -1:
        cdef Readable reader = self.reader
        cdef SecureTransport inner
        cdef Worker worker
        cdef char* scratch
        cdef Py_ssize_t at = 0, part
        if reader is not None:
            # Readers find bytes in the worker's scratch memory. What is encrypted may lie there, and more of it to come.
            worker = self.worker
            scratch = worker.scratch
            worker.scratch = p
            try:
                return reader.on_bytes(n)
            finally:
                worker.scratch = scratch
        if self.protocol is None:
            return 0
        data = PyBytes_FromStringAndSize(p, n)
        if isinstance(self.protocol, SecureTransport):
            # Its memory is that which this one is reading from.
            inner = <SecureTransport>self.protocol
            return inner.received(data, n)
        if not self.buffered:
            self.protocol.data_received(data)
            return 0
        while at < n and self.protocol is not None:
            buffer = self.protocol.get_buffer(n - at)
            part = min(<Py_ssize_t>len(buffer), n - at)
            if part == 0:
                raise RuntimeError("the protocol has no room")
            buffer[:part] = data[at:at + part]
            self.protocol.buffer_updated(part)
            at += part
        return 0

    cdef int _peer_ended(self, int error) except -1:
        """The peer has closed its half (0), or the connection is broken (an errno)."""
        cdef Readable reader = self.reader
        cdef bint clean = self.tls is not None and self.tls.state == TLS_ENDED
        if self.ended or self.lost:
            return 0
        self.ended = True
        if self.worker is not None:
            self.worker.reads.remove(self)
        if self.protocol is None:
            return self.failed("closed", "the connection ended")
        if not error and not clean and self.tls is not None and not self.tls.context.server:
            error = ECONNRESET       # what came may have been cut short by anybody (RFC 8446 section 6.1)
        if reader is not None:
            return reader.on_end(error)
        if error or not self.protocol.eof_received():
            self.close()
        return 0

    cdef int pause(self) except -1:
        if not self.reading_paused:
            self.reading_paused = True
            if not self.own_reads and self.raw is not None:
                self.raw.pause_reading()
        return 0

    cdef int resume(self) except -1:
        if self.reading_paused:
            self.reading_paused = False
            if self.own_reads:
                return self.worker.reads.watch(self)
            if self.raw is not None and not self.closing:
                self.raw.resume_reading()
        return 0

    # -- writing -------------------------------------------------------------------------------------------------------
    cdef int write_out(self, ByteBuffer out, const char* tail, Py_ssize_t tail_len) except -1:
        cdef int result
        if self.tls is None or self.closing:
            out.clear()
            return WRITE_FAILED
        # Head and body leave in one record where they fit.
        if out.length and 0 < tail_len <= RECORD - out.length:
            out.append(tail, tail_len)
            tail_len = 0
        result = self._encrypt(out.data, out.length)
        out.clear()
        if result != WRITE_FAILED and tail_len:
            result = self._encrypt(tail, tail_len)
        return result

    cdef int _encrypt(self, const char* p, Py_ssize_t n) except -1:
        """Encrypt and send what one turn of the loop can, and keep the rest for later ones."""
        cdef Py_ssize_t part = 0
        cdef int result = WRITE_QUEUED
        if self.unencrypted is None:
            part = SLICE if n > SLICE else n
            result = self._encrypt_now(p, part)
            if result == WRITE_FAILED or part == n:
                return result
            self.unencrypted = []
            self.unencrypted_at = self.unencrypted_size = 0
            if not self.queued and self.protocol is not None:
                self.protocol.pause_writing()
            self._go_on_later()
        if self.unencrypted is not None and n > part:          # the protocol may have ended the connection
            self.unencrypted.append(PyBytes_FromStringAndSize(p + part, n - part))
            self.unencrypted_size += n - part
        return WRITE_QUEUED

    cdef int _go_on_later(self) except -1:
        if not self.turn_wanted and not self.queued:
            self.turn_wanted = True
            asyncio.get_running_loop().call_soon(self._go_on)
        return 0

    def _go_on(self):
        """Encrypt the next slice. While the loop's transport holds unsent bytes, it waits for them."""
        cdef bytes first
        cdef Py_ssize_t part
        self.turn_wanted = False
        if self.unencrypted is None or self.queued or self.raw is None:
            return
        first = self.unencrypted[0]
        part = min(len(first) - self.unencrypted_at, <Py_ssize_t>SLICE)
        if self._encrypt_now(<const char*>first + self.unencrypted_at, part) == WRITE_FAILED:
            self.abort()
            return
        if self.unencrypted is None:
            return
        self.unencrypted_at += part
        self.unencrypted_size -= part
        if self.unencrypted_at == len(first):
            del self.unencrypted[0]
            self.unencrypted_at = 0
        if self.unencrypted:
            self._go_on_later()
            return
        self.unencrypted = None
        if self.output_ended:
            self.end_output()
        if self.closing:
            self._close_now()
        elif not self.queued and self.protocol is not None:
            self.protocol.resume_writing()

    cdef int _encrypt_now(self, const char* p, Py_ssize_t n) except -1:
        """Encrypt and send. Piece by piece, so that what is encrypted is sent from the processor's cache, and not kept."""
        cdef Py_ssize_t part
        cdef int result = WRITE_QUEUED if self.queued else WRITE_DONE
        while n > 0:
            part = PIECE if n > PIECE else n
            if not self.tls.write(p, part):
                output.clear()       # a part may have been encrypted, and the next one to flush is another connection
                return WRITE_FAILED
            result = self._flush()
            if result == WRITE_FAILED:
                return result
            p += part
            n -= part
        return result

    cdef int _flush(self) except -1:
        if output.length == 0:
            return WRITE_QUEUED if self.queued else WRITE_DONE
        try:
            return self._send()
        finally:
            output.clear()           # whatever happens: what is left would leave on another connection

    cdef int _send(self) except -1:
        cdef Py_ssize_t sent = 0
        cdef Py_ssize_t total = output.length
        if self.raw is None or self.lost:
            return WRITE_FAILED
        if self.fd >= 0 and not self.queued:
            while True:
                sent = send(self.fd, output.data, total, MSG_NOSIGNAL | MSG_DONTWAIT)
                if sent >= 0 or errno != EINTR:
                    break
            if sent == total:
                return WRITE_DONE
            if sent < 0:
                if errno != EAGAIN:
                    return WRITE_FAILED
                sent = 0
        rest = PyBytes_FromStringAndSize(output.data + sent, total - sent)
        output.clear()               # the other transport of TLS within TLS uses it
        self.raw.write(rest)
        self.queued = self.raw.get_write_buffer_size() > 0
        return WRITE_QUEUED if self.queued else WRITE_DONE

    cdef int end_output(self) except -1:
        self.output_ended = True
        if self.unencrypted is None and self.tls is not None and not self.closing and self.raw is not None:
            self.tls.end()
            self._flush()
            self.raw.write_eof()
        return 0

    # -- what the two sides differ in ----------------------------------------------------------------------------------
    cdef bint prepare(self, const char* p, Py_ssize_t n) except -1:
        raise NotImplementedError("SecureTransport.prepare")

    cdef int established(self) except -1:
        raise NotImplementedError("SecureTransport.established")

    cdef int failed(self, str reason, str detail) except -1:
        raise NotImplementedError("SecureTransport.failed")

    # -- asyncio.Transport of the protocol -----------------------------------------------------------------------------
    def set_protocol(self, protocol):
        self.protocol = protocol
        self.buffered = hasattr(protocol, "get_buffer")

    def get_protocol(self):
        return self.protocol

    def get_extra_info(self, name, default=None):
        if name == "ssl_object":
            return self
        if name == "sslcontext":
            return default if self.tls is None else self.tls.context
        return default if self.raw is None else self.raw.get_extra_info(name, default)

    def is_closing(self):
        return self.closing

    def is_reading(self):
        return not self.reading_paused and not self.closing

    def pause_reading(self):
        self.pause()

    def resume_reading(self):
        self.resume()

    def set_write_buffer_limits(self, high=None, low=None):
        if self.raw is not None:
            self.raw.set_write_buffer_limits(high=high, low=low)

    def get_write_buffer_limits(self):
        return (0, 0) if self.raw is None else self.raw.get_write_buffer_limits()

    def get_write_buffer_size(self):
        cdef Py_ssize_t kept = 0 if self.unencrypted is None else self.unencrypted_size
        return 0 if self.raw is None else kept + self.raw.get_write_buffer_size()

    def write(self, data):
        cdef const unsigned char[::1] view = data
        if self.tls is None or self.closing or view.shape[0] == 0:
            return
        self._encrypt(<const char*>&view[0], view.shape[0])

    def writelines(self, lines):
        self.write(b"".join(lines))

    def can_write_eof(self):
        return False

    def write_eof(self):
        raise NotImplementedError("TLS has no half-close here")

    def close(self):
        if self.closing:
            return
        self.closing = True
        if self.worker is not None:
            self.worker.reads.remove(self)
        if self.unencrypted is None:
            self._close_now()

    cdef int _close_now(self) except -1:
        if self.raw is not None:
            if self.tls is not None:
                self.tls.end()
                self._flush()
            self.raw.close()
        return 0

    def abort(self):
        self.closing = True
        self.unencrypted = None
        if self.worker is not None:
            self.worker.reads.remove(self)
        if self.raw is not None:
            self.raw.abort()

    cdef object peer_identity(self):
        """The owner of the peer's certificate, if that was asked for and accepted; None without one."""
        if self.identity is None and self.tls is not None:
            der = self.tls.verified_certificate()
            self.identity = False
            if der is not None:
                from headgate_engine.tls.identity import identity_of

                try:
                    self.identity = identity_of(der)
                except ValueError as error:
                    logger.warning("certificate cannot be read", extra={"error": str(error)})
        return self.identity or None

    # -- what is known of the handshake, by the names of ssl.SSLObject -------------------------------------------------
    def selected_alpn_protocol(self):
        return None if self.tls is None else self.tls.selected_alpn_protocol()

    def version(self):
        return None if self.tls is None else self.tls.version()

    def peer_certificate(self):
        return None if self.tls is None else self.tls.peer_certificate()
