"""A port of a pod as a port of this machine."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable
from typing import Final

from headgate.cluster.api import ApiServer
from headgate.cluster.errors import ClusterError
from headgate.cluster.pod_stream import READ_BYTES, PodStream
from headgate.cluster.pods import Pod

HOST: Final = "127.0.0.1"
# Bytes that wait for a slow side; the other is not read meanwhile.
MAX_UNSENT: Final = 1 << 20
MAX_CONNECTIONS: Final = 64


class PortForward:
    """Listens at `port` of the loopback interface and hands each connection to a stream of its own to the pod.

    `failure`: why the last stream failed, None while none has. Use it as a context manager.
    """

    def __init__(self, api: ApiServer, pod: Pod, port: int) -> None:
        """Open the first stream, so that a refusal is known at once; raises ClusterError."""
        self._open: Callable[[], PodStream] = lambda: PodStream(api, pod.namespace, pod.name, port)
        self._first: PodStream | None = self._open()
        self.failure: ClusterError | None = None
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="port-forward", daemon=True).start()

    def __enter__(self) -> PortForward:
        return self

    def __exit__(self, *_: object) -> None:
        # Wakes accept(), which close() alone does not.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if self._first is not None:
            self._first.close()

    def _accept(self) -> None:
        while True:
            self._slots.acquire()
            try:
                local, _ = self._listener.accept()
            except OSError:
                return
            stream, self._first = self._first, None
            threading.Thread(target=self._serve, args=(local, stream), name="port-forward stream", daemon=True).start()

    def _serve(self, local: socket.socket, stream: PodStream | None) -> None:
        try:
            stream = stream or self._open()
            try:
                join(local, stream)
            finally:
                stream.close()
        except ClusterError as error:
            self.failure = error
        except OSError:
            pass  # the local side has left
        finally:
            local.close()
            self._slots.release()


def join(local: socket.socket, stream: PodStream) -> None:
    """Pass bytes both ways until one side ends; raises ClusterError if the stream fails, OSError if the other does."""
    local.setblocking(False)
    to_local = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(local, selectors.EVENT_READ)
        selector.register(stream.socket, selectors.EVENT_READ)
        while True:
            if len(to_local) < MAX_UNSENT:
                to_local += stream.read()
            while to_local:
                try:
                    del to_local[: local.send(to_local)]
                except BlockingIOError:
                    break
            if stream.ended and not to_local:
                stream.check()
                return
            stream.flush()
            _watch(selector, local, stream.unsent < MAX_UNSENT, bool(to_local))
            _watch(selector, stream.socket, len(to_local) < MAX_UNSENT and not stream.ended, stream.wants_write)
            for key, events in selector.select():
                if key.fileobj is local and events & selectors.EVENT_READ:
                    data = local.recv(READ_BYTES)
                    if not data:
                        return  # the sub-protocol has no half-close
                    stream.write(data)


def _watch(selector: selectors.BaseSelector, one: socket.socket, read: bool, write: bool) -> None:
    events = (selectors.EVENT_READ if read else 0) | (selectors.EVENT_WRITE if write else 0)
    known = selector.get_map().get(one)
    if not events:
        if known is not None:
            selector.unregister(one)
    elif known is None:
        selector.register(one, events)
    elif known.events != events:
        selector.modify(one, events)
