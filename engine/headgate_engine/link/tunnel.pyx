"""Upgraded connections; see tunnel.pxd."""

from headgate_engine.context.headers cimport H_UPGRADE, HEAD_UPGRADE, MessageHead
from headgate_engine.link.contract cimport WRITE_QUEUED, ClientStream, ServerStream
from headgate_engine.link.exchange cimport END_CLEAN, ExchangeState
from headgate_engine.link.states cimport E_UPGRADE, S_TUNNEL


cdef class Tunnelling(ExchangeState):
    cdef int on_upgraded(self) except -1:
        cdef ClientStream upstream = self.upstream
        cdef ServerStream client = self.client        # what is left in it may end the tunnel at once
        if not self._move(E_UPGRADE):
            return 0
        self.destination.upgraded(self)
        client.flush()
        client.start_tunnel()
        return upstream.start_tunnel()

    cdef int on_client_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        self.ctx.request_bytes += n
        if self.tunnel_inspector is not None:
            self.tunnel_inspector.from_client(p[:n])
            return 0
        if self.upstream is not None and self.upstream.send_tunnel_data(p, n) == WRITE_QUEUED:
            self.client.pause_request()
        return 0

    cdef int on_upstream_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        self.ctx.response_bytes += n
        if self.tunnel_tap is not None:
            self.tunnel_tap.feed(p, n)
        if self.tunnel_inspector is not None:
            self.tunnel_inspector.from_upstream(p[:n])
            return 0
        if self.client.send_tunnel_data(p, n) == WRITE_QUEUED and self.upstream is not None:
            self.upstream.pause_response()
        return 0

    cdef int on_upstream_eof(self) except -1:
        # The server is done: what it sent leaves, then the client connection closes.
        self._drop_upstream()
        return self._finish(END_CLEAN)

    # -- inspected tunnels ---------------------------------------------------------------------------------------------
    def tunnel_send(self, bytes to_upstream, bytes to_client):
        """Sends what may go on to either side of an inspected tunnel."""
        if self.state != S_TUNNEL:
            return
        if to_upstream and self.upstream is not None:
            if self.upstream.send_tunnel_data(to_upstream, len(to_upstream)) == WRITE_QUEUED:
                self.client.pause_request()
        if to_client:
            if self.client.send_tunnel_data(to_client, len(to_client)) == WRITE_QUEUED and self.upstream is not None:
                self.upstream.pause_response()

    def tunnel_hold(self, bint client, bint held):
        """Stops or goes on reading one side of an inspected tunnel."""
        if self.state != S_TUNNEL:
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
        """Ends an inspected tunnel: what was sent leaves, then both connections close."""
        if self.state == S_TUNNEL:
            self.ctx.error = detail
            self._drop_upstream()
            self._finish(END_CLEAN)


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
