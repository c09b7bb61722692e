"""A stream of HTTP/2 as a transport; see stream_transport.pxd.

It shares no base with link/mesh_tunnel, though about 60 lines of both are alike: each is the sink of its stream, of two different
extension types, and such a type has one base. A third object between sink and protocol would take more lines than it saves, and be
part of a ring of references.
"""

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.contract cimport RequestSink
from headgate_engine.link.http2_stream cimport Http2ServerStream
from headgate_engine.link.worker cimport Worker

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

import logging

logger = logging.getLogger("headgate.downstream")

cdef enum:
    MOST_WAITING = 65536

# What is asked of the connection. It has a socket and perhaps TLS, but those of the tunnel are its own.
cdef tuple ADDRESSES = ("peername", "sockname")


cdef StreamTransport new_stream_transport(Worker worker, object outer, Http2ServerStream stream):
    cdef StreamTransport found = StreamTransport.__new__(StreamTransport)
    found.worker = worker
    found.outer = outer
    found.stream = stream
    found.waiting = []
    found.paused = True
    return found


cdef class StreamTransport(RequestSink):
    # -- RequestSink: what comes ---------------------------------------------------------------------------------------
    cdef int on_request_end(self, MessageHead trailers) except -1:
        return 0                  # of the CONNECT; what follows is the tunnel's

    cdef int on_request_flush(self) except -1:
        return 0

    cdef int on_client_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        if self.closing:
            return 0
        self.waiting.append(p[:n])
        self.waiting_size += n
        if self.paused or self.waiting_size >= MOST_WAITING:
            self.stream.pause_request()
        return self.later()

    cdef int on_client_eof(self) except -1:
        self.ended = True
        return self.later()

    cdef int on_client_writable(self) except -1:
        if self.protocol is not None and not self.closing:
            self.protocol.resume_writing()
        return 0

    cdef int on_client_gone(self) except -1:
        self.stream = None
        self.closing = True
        return self.later()

    cdef int on_request_refused(self, int status, str detail) except -1:
        return self.on_client_gone()

    cdef int later(self) except -1:
        if not self.scheduled:
            self.scheduled = True
            self.worker.loop.call_soon(self.go_on)
        return 0

    def go_on(self):
        self.scheduled = False
        try:
            while self.waiting and not self.paused and not self.closing and self.protocol is not None:
                data = self.waiting.pop(0)
                self.waiting_size -= len(data)
                self.hand_on(data)
            if not self.closing and not self.paused and not self.waiting:
                if self.ended and not self.ended_told and self.protocol is not None:
                    self.ended_told = True
                    if not self.protocol.eof_received():
                        self.close()
                elif self.stream is not None:
                    self.stream.resume_request()
        except Exception:  # task boundary: a fault here ends this tunnel, never the loop
            logger.exception("client connection failed")
            self.abort()
        if self.closing:
            protocol, self.protocol = self.protocol, None
            self.waiting = []
            if protocol is not None:
                protocol.connection_lost(None)

    cdef int hand_on(self, bytes data) except -1:
        cdef Py_ssize_t at = 0, part
        while at < len(data) and not self.closing:
            protocol = self.protocol      # one may have handed the tunnel to another
            buffer = protocol.get_buffer(len(data) - at)
            part = min(<Py_ssize_t>len(buffer), len(data) - at)
            buffer[:part] = data[at:at + part]
            at += part
            protocol.buffer_updated(part)
        return 0

    # -- asyncio.Transport ---------------------------------------------------------------------------------------------
    def set_protocol(self, protocol):
        self.protocol = protocol

    def get_protocol(self):
        return self.protocol

    def get_extra_info(self, name, default=None):
        return self.outer.get_extra_info(name, default) if name in ADDRESSES else default

    def is_closing(self):
        return self.closing

    def pause_reading(self):
        self.paused = True

    def resume_reading(self):
        if self.paused and not self.closing:
            self.paused = False
            self.later()

    def set_write_buffer_limits(self, high=None, low=None):
        """There are none but zero."""

    def get_write_buffer_limits(self):
        return (0, 0)

    def get_write_buffer_size(self):
        return 0 if self.stream is None else self.stream.record.waiting()

    def write(self, data):
        cdef Http2ServerStream stream = self.stream
        cdef bytes kept = bytes(data)
        if stream is not None and not self.closing and kept:
            stream.send_tunnel_data(PyBytes_AS_STRING(kept), PyBytes_GET_SIZE(kept))

    def can_write_eof(self):
        return True

    def write_eof(self):
        cdef Http2ServerStream stream = self.stream
        if stream is not None and not self.closing:
            stream.end_response(None)
            stream.flush()

    def close(self):
        cdef Http2ServerStream stream = self.stream
        if self.closing:
            return
        self.closing = True
        self.stream = None
        self.later()
        if stream is not None:
            stream.finished(True)

    def abort(self):
        cdef Http2ServerStream stream = self.stream
        self.closing = True
        self.stream = None
        self.later()
        if stream is not None:
            stream.abort()
