"""A client of HTTP/2 that opens tunnels with CONNECT (RFC 9113, section 8.5), several on one connection."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

import h2.config
import h2.connection
import h2.events
from h2.exceptions import StreamClosedError


@dataclass
class Tunnel:
    """One stream: the status of its answer, what has come, whether its half has ended, and how (an error code)."""

    number: int
    status: int = 0
    data: bytes = b""
    ended: bool = False
    reset: int | None = None


class TunnelClient:
    def __init__(self, sock: socket.socket, *, greedy: bool = True) -> None:
        self.sock = sock
        self.greedy = greedy
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(1 << 24)      # of the connection: one tunnel must not hold up the others
        self.tunnels: dict[int, Tunnel] = {}
        self.goaway: tuple[int, bytes | None] | None = None
        self.flush()

    def flush(self) -> None:
        self.sock.sendall(self.h2.data_to_send())

    def connect(self, authority: str, *fields: tuple[str, str]) -> Tunnel:
        number = self.h2.get_next_available_stream_id()
        self.h2.send_headers(number, [(":method", "CONNECT"), (":authority", authority), *fields])
        found = self.tunnels[number] = Tunnel(number)
        self.flush()
        while found.status == 0 and found.reset is None:
            self.read()
        return found

    def get(self, path: str = "/") -> Tunnel:
        number = self.h2.get_next_available_stream_id()
        head = [(":method", "GET"), (":scheme", "http"), (":authority", "a.test"), (":path", path)]
        self.h2.send_headers(number, head, end_stream=True)
        found = self.tunnels[number] = Tunnel(number)
        self.flush()
        return self.whole(found)

    def send(self, tunnel: Tunnel, data: bytes, *, end: bool = False) -> None:
        """Send as the windows allow, reading what comes meanwhile."""
        while data:
            room = min(self.h2.local_flow_control_window(tunnel.number), self.h2.max_outbound_frame_size, len(data))
            if room:
                self.h2.send_data(tunnel.number, data[:room])
                data = data[room:]
                self.flush()
            else:
                self.read()
        if end:
            self.h2.end_stream(tunnel.number)
            self.flush()

    def read(self) -> None:
        data = self.sock.recv(65536)
        assert data, f"the connection ended: {self.goaway}"
        for event in self.h2.receive_data(data):
            self.take(event)
        self.flush()

    def take(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.ConnectionTerminated):
            self.goaway = (int(event.error_code), event.additional_data)
        tunnel = self.tunnels.get(getattr(event, "stream_id", None) or 0)
        if tunnel is None:
            return
        if isinstance(event, h2.events.ResponseReceived):
            tunnel.status = int(dict(event.headers)[":status"])
        elif isinstance(event, h2.events.DataReceived):
            tunnel.data += event.data
            if self.greedy:
                try:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, tunnel.number)
                except StreamClosedError:
                    pass
        elif isinstance(event, h2.events.StreamEnded):
            tunnel.ended = True
        elif isinstance(event, h2.events.StreamReset):
            tunnel.reset = int(event.error_code)

    def until(self, tunnel: Tunnel, data: bytes) -> bytes:
        """Read until the tunnel has brought `data` at the end of what it brings; all of it."""
        while not tunnel.data.endswith(data):
            assert not tunnel.ended, tunnel
            assert tunnel.reset is None, tunnel
            self.read()
        found, tunnel.data = tunnel.data, b""
        return found

    def whole(self, tunnel: Tunnel) -> Tunnel:
        """Read until the gateway has ended its half, or has reset the stream."""
        while not tunnel.ended and tunnel.reset is None:
            self.read()
        return tunnel


class TunnelSocket:
    """A tunnel as a stream of bytes for tests.end_to_end.tcp_rig.TlsStream: what it needs of a socket."""

    def __init__(self, client: TunnelClient, tunnel: Tunnel) -> None:
        self.client, self.tunnel = client, tunnel

    def sendall(self, data: bytes) -> None:
        self.client.send(self.tunnel, data)

    def recv(self, size: int) -> bytes:
        while not self.tunnel.data and not self.tunnel.ended and self.tunnel.reset is None:
            self.client.read()
        found, self.tunnel.data = self.tunnel.data[:size], self.tunnel.data[size:]
        return found


def secured(port: int, context: ssl.SSLContext, name: str) -> ssl.SSLSocket:
    """A connection with TLS over which HTTP/2 was chosen."""
    context.set_alpn_protocols(["h2"])
    sock = context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname=name)
    sock.settimeout(60)
    assert sock.selected_alpn_protocol() == "h2"
    return sock
