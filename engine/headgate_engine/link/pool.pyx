"""Upstream connection pools; see pool.pxd."""

from headgate_engine.http1.receiver cimport Limits
from headgate_engine.link.contract cimport ConnectionHome, Sink
from headgate_engine.link.timers cimport monotonic_ns
from headgate_engine.link.upstream cimport UpstreamConnection
from headgate_engine.link.worker cimport Worker

import collections
import logging

logger = logging.getLogger("headgate.upstream")


cdef class Pool(ConnectionHome):
    """Connections of one worker to one destination.

    connector: `async connector(factory)` opens a transport whose protocol is `factory()`; it raises OSError (also
    ssl.SSLError) or TimeoutError. Idle timeout in seconds.
    """

    def __init__(self, Worker worker, str key, bytes endpoint, connector, *, double idle_timeout=90.0,
                 int64_t max_idle=-1, int64_t max_connections=0, Limits limits=None):
        self.worker = worker
        self.key = key
        self.endpoint = endpoint
        self.connector = connector
        self.idle = []
        self.waiting = collections.deque()
        self.idle_timeout_ns = <int64_t>(idle_timeout * 1e9)
        self.max_idle = max_idle
        self.max_connections = max_connections
        self.limits = Limits() if limits is None else limits

    @property
    def idle_count(self):
        return len(self.idle)

    @property
    def waiting_count(self):
        return len(self.waiting)

    # -- calls -------------------------------------------------------------------------------------------------------
    cdef bint acquire(self, Sink sink, bint fresh, bint probe) except -1:
        cdef UpstreamConnection connection
        if not fresh:
            connection = self._take_idle(probe)
            if connection is not None:
                connection.begin(sink)
                sink.on_connected(connection)
                return True
        self.waiting.append(sink)
        if self.max_connections == 0 or self.open + self.connecting < self.max_connections:
            self._open_one()
        return False

    cdef int withdraw(self, Sink sink) except -1:
        try:
            self.waiting.remove(sink)
        except ValueError:
            pass
        return 0

    cdef UpstreamConnection _take_idle(self, bint probe):
        cdef UpstreamConnection connection
        while self.idle:
            connection = <UpstreamConnection>self.idle.pop()
            if connection.alive() and (not probe or connection.quiet()):
                return connection
            connection.close()
        return None

    cdef int _serve(self, UpstreamConnection connection) except -1:
        """Hands an open connection to the longest waiting call; False when nobody waits."""
        cdef Sink sink
        if not self.waiting:
            return False
        sink = <Sink>self.waiting.popleft()
        connection.begin(sink)
        sink.on_connected(connection)
        return True

    # -- opening -----------------------------------------------------------------------------------------------------
    cdef int _open_one(self) except -1:
        self.connecting += 1
        self.worker.spawn(f"connect {self.key}", self._connect())
        return 0

    def _new_connection(self):
        return UpstreamConnection(self.worker, self, self.limits)

    async def _connect(self):
        cdef int64_t started = monotonic_ns()
        try:
            await self.connector(self._new_connection)
        except TimeoutError:
            self.connecting -= 1
            self._connect_failed(True, "connect timeout")
        except OSError as error:
            self.connecting -= 1
            self._connect_failed(False, describe(error))
        except BaseException as error:  # also a cancelled task: the call that waits must hear of it
            self.connecting -= 1
            self._connect_failed(False, type(error).__name__)
            raise
        else:
            self.connecting -= 1
            self._refill()
            if self.connect_meter is not None:
                self.connect_meter(monotonic_ns() - started)

    def _connect_failed(self, bint timed_out, str detail):
        cdef Sink sink
        self.failed += 1
        if self.waiting:
            sink = <Sink>self.waiting.popleft()
            sink.on_connect_failed(timed_out, detail)
        self._refill()

    cdef int _refill(self) except -1:
        """Calls beyond the limit wait without an attempt of their own: starts the next one if there is room now."""
        if self.waiting and self.connecting < len(self.waiting) and (
                self.max_connections == 0 or self.open + self.connecting < self.max_connections):
            self._open_one()
        return 0

    # -- ConnectionHome ----------------------------------------------------------------------------------------------
    cdef int connection_opened(self, connection) except -1:
        self.opened += 1
        self.open += 1
        if not self._serve(connection):
            self._keep(connection)
        return 0

    cdef int connection_idle(self, connection) except -1:
        if self.waiting and not (<UpstreamConnection>connection).quiet():
            # The end of the connection, or bytes nobody asked for, came right behind the response.
            (<UpstreamConnection>connection).close()
        elif not self._serve(connection):
            self._keep(connection)
        return 0

    cdef bint wanted(self) noexcept:
        return len(self.waiting) > 0

    cdef int connection_closed(self, connection) except -1:
        self.open -= 1
        try:
            self.idle.remove(connection)
        except ValueError:
            pass
        return self._refill()

    def _keep(self, UpstreamConnection connection):
        if self.closed or 0 <= self.max_idle <= len(self.idle):
            connection.close()
            return
        self.idle.append(connection)
        self.worker.timers.arm(connection.wire, monotonic_ns() + self.idle_timeout_ns)

    def close(self):
        """Closes what is idle; connections in a call close when it ends."""
        self.closed = True
        for connection in list(self.idle):
            (<UpstreamConnection>connection).close()
        self.idle.clear()


def describe(error):
    """One line for a connect failure, without addresses of memory or Python class noise."""
    reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
    return str(reason) or type(error).__name__
