"""Pools of connections to backends; see pool.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.link.contract cimport ClientConnection, ClientStream, ConnectionOwner, ResponseSink, UpstreamProtocol
from headgate_engine.link.worker cimport Worker

import collections

# Calls that wait for a connection of one pool. Each holds its request's head and at most one read of its body: some 30 KB.
# Envoy's default for the same bound (max_pending_requests) is 1024; a burst of clients at the start is longer than that.
MAX_WAITING = 16384


cdef class Pool(ConnectionOwner):
    """Connections of one worker to one destination.

    connector: `async connector(factory)` opens a transport whose protocol is `factory()`; it raises OSError (also
    ssl.SSLError) or TimeoutError. protocol: the kind of connection. Idle timeout in seconds.
    """

    def __init__(self, Worker worker not None, str key, bytes endpoint, connector, UpstreamProtocol protocol not None, *,
                 double idle_timeout=90.0, int64_t max_idle=-1, int64_t max_connections=0,
                 int64_t max_waiting=MAX_WAITING):
        self.worker = worker
        self.key = key
        self.endpoint = endpoint
        self.connector = connector
        self.protocol = protocol
        self.waiting = collections.OrderedDict()
        self.idle_timeout_ns = <int64_t>(idle_timeout * 1e9)
        self.max_idle = max_idle
        self.max_connections = max_connections
        self.max_waiting = max_waiting

    @property
    def waiting_count(self):
        return len(self.waiting)

    # -- calls -------------------------------------------------------------------------------------------------------
    cdef bint acquire(self, ResponseSink sink, bint fresh, bint probe) except -1:
        cdef ClientConnection connection
        if not fresh:
            connection = self._find(probe)
            if connection is not None:
                self._begin(connection, sink)
                return True
        if len(self.waiting) >= self.max_waiting:
            self.refused += 1
            if self.refusals is not None:
                self.refusals.bump(1)
            sink.on_refused("too many calls wait for a connection")
            return False
        self.waiting[sink] = None
        self._refill()
        return False

    cdef int withdraw(self, ResponseSink sink) except -1:
        self.waiting.pop(sink, None)
        return 0

    cdef ClientConnection _find(self, bint probe):
        """The connection most recently used that can take a call; None without one."""
        cdef ClientConnection connection
        while self.newest is not None:
            connection = self.newest
            if connection.capacity() > 0 and (not probe or connection.no_pending_input()):
                return connection
            self._unlist(connection)
            if connection.active == 0:
                connection.close()
        return None

    cdef int _begin(self, ClientConnection connection, ResponseSink sink) except -1:
        """Starts a call on a connection with room for it."""
        cdef ClientConnection held = connection      # the list may hold the last reference
        cdef ClientStream stream
        if held.counted_idle:
            held.counted_idle = False
            self.idle_count -= 1
        stream = held.begin_stream(sink)
        if held.capacity() <= 0:
            self._unlist(held)
        return sink.on_connected(stream)

    cdef ResponseSink _next_waiting(self):
        return <ResponseSink>self.waiting.popitem(False)[0]

    cdef int _offer(self, ClientConnection connection) except -1:
        """Gives waiting calls to the connection, oldest first, and keeps its remaining capacity in the pool."""
        cdef ResponseSink sink
        while self.waiting and connection.capacity() > 0:
            sink = self._next_waiting()
            self._begin(connection, sink)
        if connection.capacity() > 0:
            if connection.active == 0 and (self.closed or 0 <= self.max_idle <= self.idle_count):
                return connection.close()
            self._list(connection)
        elif self.closed and connection.active == 0:
            return connection.close()
        return 0

    # -- the list ----------------------------------------------------------------------------------------------------
    cdef int _list(self, ClientConnection connection) except -1:
        """Puts a connection in front; without a call in progress, its idle time begins."""
        self._unlist(connection)
        connection.listed = True
        connection.older = self.newest
        if self.newest is not None:
            self.newest.newer = connection
        self.newest = connection
        if connection.active == 0:
            connection.counted_idle = True
            self.idle_count += 1
            connection.keep_until(monotonic_ns() + self.idle_timeout_ns)
        return 0

    cdef int _unlist(self, ClientConnection connection) except -1:
        cdef ClientConnection held = connection
        if held.counted_idle:
            held.counted_idle = False
            self.idle_count -= 1
        if not held.listed:
            return 0
        held.listed = False
        if held.newer is None:
            self.newest = held.older
        else:
            held.newer.older = held.older
        if held.older is not None:
            held.older.newer = held.newer
        held.newer = held.older = None
        return 0

    # -- opening -----------------------------------------------------------------------------------------------------
    cdef int _refill(self) except -1:
        """Opens a connection if more calls wait than those being opened are expected to carry, and there is room."""
        if self.waiting and self.connecting * self.protocol.streams < len(self.waiting) and (
                self.max_connections == 0 or self.open + self.connecting < self.max_connections):
            self.connecting += 1
            self.worker.spawn(f"connect {self.key}", self._connect())
        return 0

    def _new_connection(self):
        return self.protocol.new_connection(self)

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
        cdef ResponseSink sink
        self.failed += 1
        if self.waiting:
            sink = self._next_waiting()
            sink.on_connect_failed(timed_out, detail)
        self._refill()

    # -- ConnectionOwner ---------------------------------------------------------------------------------------------
    cdef int connection_opened(self, ClientConnection connection) except -1:
        self.opened += 1
        self.open += 1
        return self._offer(connection)

    cdef int connection_free(self, ClientConnection connection) except -1:
        if self.waiting and not connection.no_pending_input():
            # The end of the connection, or bytes nobody asked for, came right behind the response.
            return connection.close()
        return self._offer(connection)

    cdef bint wanted(self) noexcept:
        return len(self.waiting) > 0

    cdef int connection_closed(self, ClientConnection connection) except -1:
        self.open -= 1
        self._unlist(connection)
        return self._refill()

    def close(self):
        """Closes what is idle; connections in a call close when it ends."""
        cdef ClientConnection connection
        self.closed = True
        while self.newest is not None:
            connection = self.newest
            self._unlist(connection)
            if connection.active == 0:
                connection.close()


def describe(error):
    """One line for a connect failure, without addresses of memory or Python class noise."""
    reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
    return str(reason) or type(error).__name__
