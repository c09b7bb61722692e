"""One stream of bytes to a port of a pod, over a WebSocket through the API server.

The sub-protocol is `v4.channel.k8s.io` of the `portforward` subresource: each message begins with the number of its
channel, 0 for data and 1 for errors; the first message of a channel has the port in two little-endian bytes.
https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import ProtocolError

from headgate.cluster.api import QUOTED_BYTES, ApiServer, refusal
from headgate.cluster.errors import ClusterError

PROTOCOL: Final = "v4.channel.k8s.io"
DATA: Final = 0
ERRORS: Final = 1
PORT_BYTES: Final = 2
READ_BYTES: Final = 65536
# Bytes of one message of data.
MESSAGE_BYTES: Final = 65536


class PodStream:
    """A connection to a port of a pod. Bytes come and go without blocking; see wants_write, read(), write(), flush().

    `socket`: to be waited for. `ended`: the pod, or the API server, has closed the stream.
    """

    def __init__(self, api: ApiServer, namespace: str, pod: str, port: int) -> None:
        """Connect and shake hands; raises ClusterError."""
        self.place = f"port {port} of pod {pod}.{namespace}"
        self._port = port.to_bytes(PORT_BYTES, "little")
        self._connection = WSConnection(ConnectionType.CLIENT)
        self._channel: int | None = None  # of the message that is being read; None before its first byte
        self._first: dict[int, bytes] = {DATA: b"", ERRORS: b""}  # what has come of a channel's first message
        self._received = bytearray()
        self._failure = bytearray()
        self._rejected = bytearray()
        self._unsent = bytearray()
        self.ended = False
        self.socket = api.connect()
        try:
            self._shake_hands(api, f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}/portforward?ports={port}")
        except BaseException:
            self.socket.close()
            raise
        self.socket.setblocking(False)

    def _shake_hands(self, api: ApiServer, path: str) -> None:
        headers = [(name.encode(), value.encode()) for name, value in api.access.headers.items()]
        request = Request(
            host=api.authority, target=api.prefix + path, subprotocols=[PROTOCOL], extra_headers=headers
        )
        try:
            self.socket.sendall(self._connection.send(request))
            status = 0
            while True:
                data = self.socket.recv(READ_BYTES)
                self._connection.receive_data(data or None)
                for event in self._connection.events():
                    if isinstance(event, AcceptConnection):
                        if event.subprotocol != PROTOCOL:
                            raise ClusterError(f"{self.place}: the API server does not forward ports over WebSocket")
                        self._take(self._connection.events())
                        return
                    if isinstance(event, RejectConnection):
                        status = event.status_code
                        if not event.has_body:
                            raise self._refused(status)
                    elif isinstance(event, RejectData):
                        self._rejected += event.data[: QUOTED_BYTES * 8 - len(self._rejected)]
                        if event.body_finished:
                            raise self._refused(status)
                if not data:
                    raise self._refused(status) if status else self._broken("the API server closed the connection")
        except ProtocolError as error:
            raise self._broken(f"the API server does not speak WebSocket: {error}") from None
        except OSError as error:
            raise self._broken(str(error)) from None

    def _refused(self, status: int) -> ClusterError:
        return ClusterError(f"{self.place}: the API server refused: {refusal(status, bytes(self._rejected))}")

    def _broken(self, why: str) -> ClusterError:
        return ClusterError(f"{self.place}: {why}")

    @property
    def wants_write(self) -> bool:
        """Whether bytes wait for the socket."""
        return bool(self._unsent)

    @property
    def unsent(self) -> int:
        """Bytes that wait for the socket."""
        return len(self._unsent)

    def write(self, data: bytes) -> None:
        """Queue bytes for the pod; flush() sends them."""
        for at in range(0, len(data), MESSAGE_BYTES):
            piece = data[at : at + MESSAGE_BYTES]
            self._unsent += self._connection.send(BytesMessage(data=bytes([DATA]) + piece))

    def flush(self) -> None:
        """Send what the socket takes; raises ClusterError if the connection is broken."""
        try:
            while self._unsent:
                del self._unsent[: self.socket.send(self._unsent[:READ_BYTES])]
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError as error:
            raise self._broken(str(error)) from None

    def read(self) -> bytes:
        """Return the bytes of the pod that have come, b"" if there are none yet; raises ClusterError.

        To be called when the socket can be read; it reads all that TLS has decrypted.
        """
        while not self.ended:
            try:
                data = self.socket.recv(READ_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            except ssl.SSLEOFError:
                data = b""  # closed without a TLS close_notify alert
            except OSError as error:
                raise self._broken(str(error)) from None
            try:
                self._connection.receive_data(data or None)
                self._take(self._connection.events())
            except ProtocolError as error:
                raise self._broken(f"the API server does not speak WebSocket: {error}") from None
            if not data and not self.ended:
                self.ended = True
                self._failure += b"the API server closed the connection"
            if not isinstance(self.socket, ssl.SSLSocket) or not self.socket.pending():
                break
        found = bytes(self._received)
        self._received.clear()
        if not found:
            self.check()
        return found

    def check(self) -> None:
        """Raise ClusterError if the other side has reported an error."""
        if self._failure:
            raise self._broken(self._failure.decode(errors="replace").strip())

    def _take(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, BytesMessage):
                self._piece(bytes(event.data), event.message_finished)
            elif isinstance(event, Ping):
                self._unsent += self._connection.send(event.response())
            elif isinstance(event, CloseConnection):
                if event.code not in (1000, 1001):
                    self._failure += f"the stream was closed with {int(event.code)}: {event.reason or ''}".encode()
                self.ended = True
            elif isinstance(event, TextMessage):
                raise self._broken("a text message where bytes are expected")

    def _piece(self, data: bytes, last: bool) -> None:
        """Take a part of a message; the channel stands in front of its first byte."""
        if self._channel is None and data:
            self._channel, data = data[0], data[1:]
            if self._channel not in self._first:
                raise self._broken(f"channel {self._channel} was not opened")
        if self._channel is not None and data:
            missing = PORT_BYTES - len(self._first[self._channel])
            if missing > 0:
                self._first[self._channel] += data[:missing]
                data = data[missing:]
                if missing <= 0 or not self._port.startswith(self._first[self._channel]):
                    raise self._broken("the API server forwards another port")
            (self._received if self._channel == DATA else self._failure).extend(data)
        if last:
            self._channel = None

    def close(self) -> None:
        """Close the connection; never raises."""
        try:
            self.socket.close()
        except OSError:
            return
