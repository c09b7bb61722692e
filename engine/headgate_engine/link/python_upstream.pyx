"""Protocols with a backend written in Python; see python_upstream.pxd."""

from libc.stdint cimport int64_t

from headgate_engine.context.headers cimport MessageHead, new_head
from headgate_engine.link.contract cimport (
    WRITE_DONE, ClientConnection, ClientStream, ConnectionOwner, ResponseSink, UpstreamProtocol)
from headgate_engine.link.worker cimport Worker
from headgate_engine.wire.buffer cimport ByteBuffer


cdef class PythonConnection(ClientConnection):
    """One connection. The driver reports with opened() that it can take calls, and with closed_by_peer() its end."""

    def __init__(self, PythonUpstream protocol not None, ConnectionOwner owner not None):
        self.protocol = protocol
        self.owner = owner
        self.max_streams = protocol.streams
        self.calls = {}

    # -- the driver's side -------------------------------------------------------------------------------------------
    @property
    def streams(self):
        """The calls in progress, oldest first."""
        return list(self.calls)

    def opened(self):
        self.owner.connection_opened(self)

    def allow(self, int streams):
        """Sets how many concurrent calls the peer allows from now on."""
        self.max_streams = streams
        if self.capacity() > 0:
            self.owner.connection_free(self)

    def go_away(self, PythonStream last=None):
        """The peer takes no more calls. It has not processed those that began after `last` (all, if None)."""
        cdef PythonStream stream
        behind = last is None
        self.leaving = True
        for stream in list(self.calls):
            if behind:
                stream.refuse()
            behind = behind or stream is last
        if self.active == 0:
            self.close()

    def closed_by_peer(self, str detail="connection closed"):
        cdef PythonStream stream
        if self.closed:
            return
        self.closed = True
        for stream in list(self.calls):
            stream.fail(detail)
        self.owner.connection_closed(self)

    # -- ClientConnection --------------------------------------------------------------------------------------------
    cdef int capacity(self) noexcept:
        return 0 if self.closed or self.leaving else max(0, self.max_streams - self.active)

    cdef ClientStream begin_stream(self, ResponseSink sink):
        cdef PythonStream stream = PythonStream.__new__(PythonStream)
        stream.connection = self
        stream.sink = sink
        stream.kept = self.begun > 0
        stream.body = ByteBuffer()
        self.begun += 1
        self.active += 1
        self.calls[stream] = None
        return stream

    cdef bint no_pending_input(self) except -1:
        return not self.closed

    cdef int keep_until(self, int64_t deadline_ns) except -1:
        # Nothing is held in the kernel for it: it stays until its pool closes it.
        return 0

    cdef int close(self) except -1:
        # From the loop: the pool is in the middle of something.
        self.leaving = True
        self.protocol.worker.loop.call_soon(self.closed_by_peer)
        return 0

    cdef int _end(self, PythonStream stream) except -1:
        self.calls.pop(stream, None)
        self.active -= 1
        if self.closed:
            return 0
        if self.leaving:
            return self.close() if self.active == 0 else 0
        if self.capacity() > 0:
            self.owner.connection_free(self)
        return 0


cdef class PythonStream(ClientStream):
    """One call. Its request is whole when `serve` gets it; one of respond(), refuse() and fail() ends it."""

    @property
    def target(self):
        return self.request.target

    @property
    def method(self):
        return self.request.method

    @property
    def payload(self):
        """The body of the request."""
        return self.body.data[:self.body.length] if self.body.length else b""

    @property
    def over(self):
        return self.connection is None

    def respond(self, int status, bytes body=b""):
        """Answers the call. Does nothing if the caller has aborted it."""
        cdef MessageHead head
        cdef ResponseSink sink = self.sink
        if self.connection is None:
            return
        self.answered = True
        head = new_head()
        head.status = status
        head.content_length = len(body)
        sink.on_response_head(head)
        if body and self.connection is not None:
            sink.on_response_data(body, len(body))
        if self.connection is not None:
            self._leave()
            sink.on_response_end(None)

    def refuse(self):
        """Ends the call: the peer has not processed it and will not."""
        self.refused = True
        self.fail("the backend refused the call")

    def fail(self, str detail):
        cdef ResponseSink sink
        if self.connection is not None:
            sink = self._leave()
            sink.on_upstream_failed(self.answered, detail)

    cdef ResponseSink _leave(self):
        cdef PythonConnection connection = self.connection
        cdef ResponseSink sink = self.sink
        self.connection = None
        self.sink = None
        connection._end(self)
        return sink

    # -- ClientStream ------------------------------------------------------------------------------------------------
    cdef int send_head(self, MessageHead head, int size, int64_t length, bint upgrade) except -1:
        self.request = head
        return 0

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        return self.body.append(p, n)

    cdef int send_end(self, MessageHead trailers) except -1:
        if self.connection is not None:
            # From the loop: the caller is in the middle of sending.
            self.connection.protocol.worker.loop.call_soon(self.connection.protocol.serve, self)
        return 0

    cdef int flush(self) except -1:
        return WRITE_DONE

    cdef bint reused(self) noexcept:
        return self.kept

    cdef bint unprocessed(self) noexcept:
        return self.refused

    # respond() sends an answer at once and whole: there is no more to hold back.
    cdef int pause_response(self) except -1:
        return 0

    cdef int resume_response(self) except -1:
        return 0

    cdef int cancel(self) except -1:
        if self.connection is not None:
            self._leave()
        return 0


cdef class PythonUpstream(UpstreamProtocol):
    """serve: `serve(stream)`, called once a call's request is complete. streams: calls at a time on a new connection."""

    def __init__(self, Worker worker not None, str name, serve, int streams=1):
        if streams < 1:
            raise ValueError("a connection carries at least one call")
        self.worker = worker
        self.name = name
        self.serve = serve
        self.streams = streams

    cdef ClientConnection new_connection(self, ConnectionOwner owner):
        return PythonConnection(self, owner)
