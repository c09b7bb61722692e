"""Upgraded connections; see tunnel.pxd."""

from headgate_engine.context.headers cimport H_UPGRADE, HEAD_UPGRADE, MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.contract cimport WRITE_QUEUED, ClientStream, RequestSink, ServerStream

cdef enum:
    MINOR_OF_2 = 20       # of the heads that http2/heads makes


cdef StreamTunnel new_tunnel(RequestSink owner, RequestContext ctx, ServerStream client, ClientStream upstream):
    cdef StreamTunnel found = StreamTunnel.__new__(StreamTunnel)
    found.owner = owner
    found.ctx = ctx
    found.client = client
    found.upstream = upstream
    return found


cdef class StreamTunnel:
    cdef int start(self) except -1:
        cdef ServerStream client = self.client        # what is left in them may end the tunnel at once
        cdef ClientStream upstream = self.upstream
        client.flush()
        client.start_tunnel()
        return upstream.start_tunnel()

    cdef int from_client(self, const char* p, Py_ssize_t n) except -1:
        if self.owner is None:
            return 0
        self.ctx.request_bytes += n
        if self.inspector is not None:
            self.inspector.from_client(p[:n])
            return 0
        return self._to_upstream(p, n)

    cdef int from_upstream(self, const char* p, Py_ssize_t n) except -1:
        if self.owner is None:
            return 0
        self.ctx.response_bytes += n
        if self.tap is not None:
            self.tap.feed(p, n)
        if self.inspector is not None:
            self.inspector.from_upstream(p[:n])
            return 0
        return self._to_client(p, n)

    cdef int _to_upstream(self, const char* p, Py_ssize_t n) except -1:
        cdef ServerStream client = self.client
        cdef ClientStream upstream = self.upstream
        if upstream is not None and upstream.send_tunnel_data(p, n) == WRITE_QUEUED:
            client.pause_request()
        return 0

    cdef int _to_client(self, const char* p, Py_ssize_t n) except -1:
        cdef ServerStream client = self.client
        cdef ClientStream upstream = self.upstream
        if client.send_tunnel_data(p, n) == WRITE_QUEUED and upstream is not None:
            upstream.pause_response()
        return 0

    cdef int client_ended(self) except -1:
        return 0 if self.upstream is None else self.upstream.write_eof()

    cdef int client_writable(self) except -1:
        return 0 if self.upstream is None else self.upstream.resume_response()

    cdef int upstream_writable(self) except -1:
        return 0 if self.client is None else self.client.resume_request()

    cdef int close(self) except -1:
        inspector = self.inspector
        self.owner = None
        self.ctx = None
        self.client = None
        self.upstream = None
        self.tap = None
        self.inspector = None
        if inspector is not None:
            inspector.closed()
        return 0

    # -- for who inspects it -------------------------------------------------------------------------------------------
    def tunnel_send(self, bytes to_upstream, bytes to_client):
        """Sends what may go on to either side."""
        if self.owner is None:
            return
        if to_upstream:
            self._to_upstream(to_upstream, len(to_upstream))
        if to_client and self.owner is not None:
            self._to_client(to_client, len(to_client))

    def tunnel_hold(self, bint client, bint held):
        """Pause or resume reading one side."""
        if self.owner is None:
            return
        if client and held:
            self.client.pause_request()
        elif client:
            self.client.resume_request()
        elif self.upstream is not None and held:
            self.upstream.pause_response()
        elif self.upstream is not None:
            self.upstream.resume_response()

    def tunnel_end(self, str detail):
        """Ends the tunnel: flushes both sides, then closes both connections."""
        cdef RequestSink owner = self.owner
        if owner is not None:
            owner.on_tunnel_end(detail)


cdef bint is_false_switch(MessageHead request, MessageHead response) except -1:
    if response.status == 101:
        return not same_upgrade(request, response)
    # To a client with an extended CONNECT every 2xx opens the tunnel (RFC 8441 section 5).
    return request.minor_version == MINOR_OF_2 and request.flags & HEAD_UPGRADE and 200 <= response.status < 300


cdef bint same_upgrade(MessageHead request, MessageHead response) except -1:
    """The backend switched to a protocol the client asked for."""
    if not request.flags & HEAD_UPGRADE:
        return False
    wanted = upgrade_of(request)
    given = upgrade_of(response)
    if wanted is None or given is None:
        return False
    return given.strip().lower() in [word.strip().lower() for word in wanted.split(",")]


cdef str upgrade_of(MessageHead head):
    """The upgrade field, which is hop-by-hop and so marked dropped."""
    cdef int i
    for i in range(head.count):
        if head.spans[i].id == H_UPGRADE:
            return head.data[head.spans[i].value_off:head.spans[i].value_off + head.spans[i].value_len].decode("latin-1")
    return None
