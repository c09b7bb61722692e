"""What is seen of a client's connection; see face.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.link.contract cimport ServerStream
from headgate_engine.plan.plans cimport BindPlan
from headgate_engine.route.table cimport HostTable

from libc.stdint cimport int64_t

from headgate_engine.link.addresses import address_of, address_text


cdef class ClientFace(ServerStream):
    @property
    def peer(self):
        """Remote address as `host:port` ([host]:port for IPv6), or `unix`."""
        if self.peer_text is None:
            self.peer_text = address_text(self.peer_host, self.peer_port)
        return self.peer_text

    cdef int take_addresses(self, transport) except -1:
        proxied = self.proxied
        if proxied is None:
            self.peer_host, self.peer_port = address_of(transport, "peername")
        else:
            self.peer_host, self.peer_port = proxied.host, proxied.port
        self.transport = transport
        return 0

    @property
    def raw_host(self):
        """The address of the socket's peer: that of the proxy if it sent another address for the client."""
        return self.peer_host if self.proxied is None else self.proxied.raw_host

    @property
    def raw_port(self):
        """The port of the socket's peer."""
        return self.peer_port if self.proxied is None else self.proxied.raw_port

    @property
    def local(self):
        """Address and port on this side; ("", 0) for a Unix socket."""
        return ("", 0) if self.transport is None else address_of(self.transport, "sockname")

    @property
    def reached(self):
        """Address and port that the client connected to: behind a PROXY protocol header, as that says."""
        proxied = self.proxied
        return self.local if proxied is None or proxied.destination is None else proxied.destination

    @property
    def server_name(self):
        """The name that the client asked for in its TLS handshake; None without one."""
        return None if self.wire.tls is None else self.wire.tls.requested_name

    @property
    def client_identity(self):
        """The owner of the client's certificate (tls.identity.CertificateIdentity); None without one."""
        found = None if self.wire.tls is None else self.wire.tls.peer_identity()
        return self.proxied.identity if found is None and self.proxied is not None else found

    def named_listener(self, BindPlan bind):
        """The listener for the server name in the TLS handshake; None without TLS or without a match."""
        cdef bytes name
        if self.named_for is not bind:
            name = (self.server_name or "").lower().encode("ascii", "replace")
            self.named = None if self.transport is None or not bind.secure else (<HostTable>bind.listeners).find(
                name, len(name))
            self.named_for = bind
        return self.named

    cdef int gone(self) except -1:
        own, self.own_pools = self.own_pools, None
        if own is not None:
            for pool in own.values():
                pool.close()
        return self.worker.connection_lost(self)

    cdef int watch_output(self) except -1:
        self.write_due_ns = monotonic_ns() + self.plan.body_timeout_ns
        self.write_left = self.wire.transport.get_write_buffer_size()
        return self.worker.timers.arm(self.wire, self.write_due_ns)

    cdef int write_stalled(self, int64_t now) except -1:
        cdef Py_ssize_t left = self.wire.transport.get_write_buffer_size()
        if left < self.write_left:
            self.write_due_ns = now + self.plan.body_timeout_ns
        elif self.write_due_ns <= now:
            return self.abort()
        self.write_left = left
        return self.worker.timers.arm(self.wire, self.write_due_ns)

    @property
    def secure(self):
        """Whether the client uses TLS."""
        return self.slot.plan.secure

    @property
    def bind_key(self):
        return self.slot.key
