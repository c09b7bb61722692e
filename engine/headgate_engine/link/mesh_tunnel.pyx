"""Tunnels through workloads of a mesh; see mesh_tunnel.pxd."""

from headgate_engine.context.headers cimport HEAD_CHUNKED, HEAD_CONNECT, MessageHead, new_head
from headgate_engine.link.contract cimport CONNECT_TIMED_OUT, SIZE_UNKNOWN, ClientStream, ResponseSink
from headgate_engine.link.pool cimport Pool

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

import logging

logger = logging.getLogger("headgate.upstream")

cdef enum:
    MOST_WAITING = 65536
    # Of a tunnel that the workload says it has not looked at, or whose connection was closed before it could.
    MOST_ATTEMPTS = 3

# How long a tunnel that this side has closed waits for the end of the other half.
LINGER_SECONDS = 5.0


cdef class MeshTunnel(ResponseSink):
    """A tunnel to an authority (`address:port`) through the workload that a pool of HTTP/2 connections leads to."""

    def __init__(self, Pool pool not None, str authority not None):
        self.pool = pool
        self.authority = authority.encode("ascii")
        self.waiting = []
        self.paused = True

    async def opened(self):
        """Return when the workload has opened the tunnel. Raises ConnectionError, or TimeoutError for the connect."""
        self.waiter = self.pool.worker.loop.create_future()
        try:
            self.start(False)
            await self.waiter
        except BaseException:
            self.abort()
            raise
        finally:
            # An exception knows the frames that it went through, and they this object.
            self.waiter = None

    cdef int start(self, bint fresh) except -1:
        self.attempts += 1
        self.asked = True
        self.pool.acquire(self, fresh, True)
        return 0

    # -- ResponseSink --------------------------------------------------------------------------------------------------
    cdef int on_connected(self, ClientStream stream) except -1:
        cdef MessageHead head = new_head()
        self.asked = False
        if self.closing:
            return stream.cancel()
        self.stream = stream
        head.set_request("CONNECT", self.authority.decode("ascii"), self.authority.decode("ascii"))
        head.flags |= HEAD_CONNECT | HEAD_CHUNKED
        stream.send_head(head, SIZE_UNKNOWN, -1, False)
        stream.flush()
        return 0

    cdef int on_connect_failed(self, int failure, str detail) except -1:
        self.asked = False
        return self.fail(TimeoutError() if failure == CONNECT_TIMED_OUT else ConnectionError(f"HBONE: {detail}"))

    cdef int on_informational(self, MessageHead head) except -1:
        return 0

    cdef int on_response_head(self, MessageHead head) except -1:
        cdef ClientStream stream = self.stream
        waiter = self.waiter
        if self.closing or stream is None:
            return 0
        if not 200 <= head.status < 300:
            return self.fail(ConnectionError(f"HBONE: the workload refused the tunnel with status {head.status}"))
        self.open = True
        stream.start_tunnel()
        stream.pause_response()   # until there is a protocol
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        return 0

    cdef int on_response_data(self, const char* p, Py_ssize_t n) except -1:
        return 0                  # of an answer that is no tunnel

    cdef int on_response_end(self, MessageHead trailers) except -1:
        self.stream = None
        return self.fail(ConnectionError("HBONE: the workload ended the tunnel"))

    cdef int on_response_flush(self) except -1:
        return 0

    cdef int on_upgraded(self) except -1:
        return 0

    cdef int on_upstream_writable(self) except -1:
        protocol = self.protocol
        if self.closing:
            return self.let_go() if self.ended else 0
        if protocol is not None:
            protocol.resume_writing()
        return 0

    cdef int on_upstream_failed(self, bint bytes_seen, str detail) except -1:
        cdef ClientStream stream = self.stream
        cdef bint again = not bytes_seen and not self.closing and stream is not None and self.attempts < MOST_ATTEMPTS and (
            stream.reused() or stream.unprocessed())
        self.stream = None
        if again and not self.open:
            return self.start(True)
        return self.fail(ConnectionError(f"HBONE: {detail}"))

    cdef int on_upstream_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        cdef ClientStream stream = self.stream
        if self.closing or stream is None:
            return 0
        self.waiting.append(p[:n])
        self.waiting_size += n
        if self.paused or self.waiting_size >= MOST_WAITING:
            stream.pause_response()
        return self.later()

    cdef int on_upstream_eof(self) except -1:
        cdef ClientStream stream = self.stream
        self.ended = True
        if self.closing:
            return 0 if stream is not None and stream.congested() else self.let_go()
        return self.later()

    cdef int fail(self, object error) except -1:
        """The tunnel is over, or will not be."""
        waiter = self.waiter
        if self.lost_for is None:
            self.lost_for = error
        self.closing = True
        self.let_go()
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)
        return self.later()

    cdef int let_go(self) except -1:
        """The stream is given up, or no longer waited for."""
        cdef ClientStream stream = self.stream
        self.stream = None
        if self.linger is not None:
            self.linger.cancel()
            self.linger = None
        if stream is not None:
            return stream.cancel()
        if self.asked:
            self.asked = False
            return self.pool.withdraw(self)
        return 0

    # -- what comes ----------------------------------------------------------------------------------------------------
    cdef int later(self) except -1:
        if not self.scheduled and self.protocol is not None:
            self.scheduled = True
            self.pool.worker.loop.call_soon(self.go_on)
        return 0

    def go_on(self):
        cdef ClientStream stream
        self.scheduled = False
        try:
            while self.waiting and not self.paused and not self.closing and self.protocol is not None:
                data = self.waiting.pop(0)
                self.waiting_size -= len(data)
                self.hand_on(data)
            if not self.closing and not self.paused and not self.waiting:
                stream = self.stream
                if self.ended:
                    if not self.ended_told:
                        self.ended_told = True
                        protocol = self.protocol
                        if not protocol.eof_received():
                            self.close()
                elif stream is not None:
                    stream.resume_response()
        except Exception:  # task boundary: a fault here ends this tunnel, never the loop
            logger.exception("upstream connection failed")
            self.abort()
        if self.closing:
            protocol, self.protocol = self.protocol, None
            self.waiting = []
            if protocol is not None:
                protocol.connection_lost(self.lost_for)

    cdef int hand_on(self, bytes data) except -1:
        cdef Py_ssize_t at = 0, part
        while at < len(data) and not self.closing:
            protocol = self.protocol      # one may have handed the tunnel to another
            if not self.buffered:
                protocol.data_received(data)
                return 0
            buffer = protocol.get_buffer(len(data) - at)
            part = min(<Py_ssize_t>len(buffer), len(data) - at)
            buffer[:part] = data[at:at + part]
            at += part
            protocol.buffer_updated(part)
        return 0

    # -- asyncio.Transport ---------------------------------------------------------------------------------------------
    def set_protocol(self, protocol):
        """From now on, what comes goes there. connection_made() is the caller's to call."""
        self.protocol = protocol
        self.buffered = hasattr(protocol, "get_buffer")
        self.paused = False
        self.later()

    def get_protocol(self):
        return self.protocol

    def get_extra_info(self, name, default=None):
        """The connection has a socket and TLS, but they are not those of what is in the tunnel."""
        return default

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
        """1 while something waits, else 0."""
        cdef ClientStream stream = self.stream
        return 1 if stream is not None and stream.congested() else 0

    def write(self, data):
        cdef ClientStream stream = self.stream
        cdef bytes kept = bytes(data)
        if stream is not None and not self.closing and not self.output_ended and kept:
            stream.send_tunnel_data(PyBytes_AS_STRING(kept), PyBytes_GET_SIZE(kept))

    def can_write_eof(self):
        return True

    def write_eof(self):
        cdef ClientStream stream = self.stream
        if stream is not None and not self.closing and not self.output_ended:
            self.output_ended = True
            stream.write_eof()

    def close(self):
        """End this half behind what was written, and take nothing more. The stream is given up when both halves have
        ended: a reset right behind the last bytes could overtake them at the workload.
        """
        cdef ClientStream stream = self.stream
        if self.closing:
            return
        self.write_eof()
        self.closing = True
        if stream is None or not self.open or self.ended and not stream.congested():
            self.let_go()
        else:
            stream.resume_response()
            self.linger = self.pool.worker.loop.call_later(LINGER_SECONDS, self.abort)
        self.later()

    def abort(self):
        self.closing = True
        self.let_go()
        self.later()
