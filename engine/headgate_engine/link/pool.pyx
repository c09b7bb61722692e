"""Pools of connections to backends; see pool.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.link.contract cimport (
    CONNECT_FAILED, CONNECT_FORBIDDEN, CONNECT_TIMED_OUT, CONNECT_UNRESOLVED, ClientConnection, ClientStream, ConnectionOwner,
    ResponseSink, UpstreamProtocol)
from headgate_engine.link.worker cimport Worker

from headgate_engine.errors import DestinationRefusedError, NameResolutionError

import asyncio
import collections
import errno

# Calls that wait for a connection of one pool. Each holds its request's head and at most one read of its body: some 30 KB.
# Envoy's default for the same bound (max_pending_requests) is 1024; a burst of clients at the start is longer than that.
MAX_WAITING = 16384
# Of connections that carry many calls each: those that are open when a call that a backend has refused does not get another
# one, and idle ones that are kept where the configuration does not say how many.
cdef enum:
    MOST_SPREAD = 8
# How long a backend that does not speak HTTP/2 is not asked again.
cdef int64_t SPURNED_NS = 60000000000
# The process, or the whole machine, has no descriptor left.
OUT_OF_DESCRIPTORS = frozenset((errno.EMFILE, errno.ENFILE))


cdef class ClientPools:
    cdef Pool pool_of(self, Pool pool, object connection):
        raise NotImplementedError("ClientPools.pool_of")


cdef class Opening:
    def __call__(self):
        cdef Pool pool = self.pool
        cdef UpstreamProtocol protocol = pool.protocol if self.chosen is None else self.chosen
        pool.arriving.pop(self.connection, None)
        self.connection = protocol.new_connection(pool)
        pool.arriving[self.connection] = self
        return self.connection

    def negotiated(self, str name):
        cdef Pool pool = self.pool
        if pool.other is not None:
            self.chosen = pool.other if name == pool.other.name else pool.protocol
            pool.chose_plain = self.chosen is pool.protocol


cdef class Pool(ConnectionOwner):
    """Connections of one worker to one destination.

    connector: `async connector(factory)` opens a transport whose protocol is `factory()`; it raises OSError (also
    for a failed TLS handshake) or TimeoutError. protocol: the kind of connection. Idle timeout in seconds.
    """

    def __init__(self, Worker worker not None, str key, bytes endpoint, connector, UpstreamProtocol protocol not None, *,
                 double idle_timeout=90.0, int64_t max_idle=-1, int64_t max_connections=0,
                 int64_t max_waiting=MAX_WAITING):
        self.worker = worker
        self.key = key
        self.endpoint = endpoint
        self.connector = connector
        self.protocol = protocol
        self.openings = collections.OrderedDict()
        self.arriving = {}
        self.waiting = collections.OrderedDict()
        self.idle_timeout_ns = <int64_t>(idle_timeout * 1e9)
        self.max_idle = max_idle
        self.max_connections = max_connections
        self.max_waiting = max_waiting
        worker.budget.join(self)

    @property
    def waiting_count(self):
        return len(self.waiting)

    cdef Pool for_http2(self):
        if self.twin is None:
            if self.make_twin is None or self.closed:
                return self
            self.twin = <Pool?>self.make_twin()
            self.twin.plain = self
        return self if self.twin.spurned_ns and monotonic_ns() < self.twin.spurned_ns else self.twin

    cdef Pool for_upgrades(self):
        if self.upgrading is None:
            if self.make_upgrading is None or self.closed:
                return self
            self.upgrading = <Pool?>self.make_upgrading()
        return self.upgrading

    cdef int _streams(self) except -1:
        return self.protocol.streams if self.other is None or self.chose_plain else self.other.streams

    cdef int proven(self, ClientConnection connection) except -1:
        self.unproven -= 1
        return self._offer(connection)

    cdef int spurn(self) except -1:
        cdef Pool plain = self.plain
        self.unproven -= 1
        if plain is None:
            return 0
        self.spurned_ns = monotonic_ns() + SPURNED_NS
        while self.waiting:
            plain.acquire(self._next_waiting(), False, True)
        return 0

    # -- calls -------------------------------------------------------------------------------------------------------
    cdef bint acquire(self, ResponseSink sink, bint fresh, bint probe) except -1:
        cdef ClientConnection connection
        if not fresh or self.open + self.connecting >= MOST_SPREAD and self._streams() > 1:
            connection = self._find(probe)
            if connection is not None:
                self._begin(connection, sink)
                return True
        if len(self.waiting) >= self.max_waiting:
            self._refuse(sink, "too many calls wait for a connection")
            return False
        self.waiting[sink] = None
        if not self._refill() and sink in self.waiting:
            del self.waiting[sink]
            self._refuse(sink, "no descriptor is left for a connection")
        return False

    cdef int withdraw(self, ResponseSink sink) except -1:
        if sink not in self.waiting:
            return 0 if self.plain is None else self.plain.withdraw(sink)      # spurn() may have passed it on
        del self.waiting[sink]
        if self.openings and (self.connecting - 1) * self._streams() >= len(self.waiting):
            self._give_up()
        return 0

    cdef int _refuse(self, ResponseSink sink, str detail) except -1:
        self.refused += 1
        if self.refusals is not None:
            self.refusals.bump(1)
        return sink.on_refused(detail)

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
        while len(self.waiting) and connection.capacity() > 0:
            sink = self._next_waiting()
            self._begin(connection, sink)
        if connection.capacity() > 0:
            if connection.active == 0 and (self.closed or enough_idle(self, connection)):
                return connection.close()
            self._list(connection)
        elif self.closed and connection.active == 0:
            return connection.close()
        return 0

    # -- the list ----------------------------------------------------------------------------------------------------
    cdef int _list(self, ClientConnection connection) except -1:
        """Puts a connection in front; without a call in progress, its idle time begins."""
        if connection.listed or connection.counted_idle:
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
    cdef bint _refill(self) except -1:
        """Opens a connection if more calls wait than those being opened are expected to carry, and there is room."""
        cdef Opening opening
        if not self.waiting or (self.connecting + self.unproven) * self._streams() >= len(self.waiting) or (
                0 < self.max_connections <= self.open + self.connecting):
            return True
        if not self.worker.budget.take(self.worker.clients()):
            return False
        opening = Opening.__new__(Opening)
        opening.pool = self
        self.connecting += 1
        self.openings[opening] = None
        opening.task = self.worker.spawn(f"connect {self.key}", self._connect(opening))
        return True

    cdef int _go_on(self) except -1:
        cdef int64_t before
        while True:
            before = self.connecting
            if not self._refill():
                while self.waiting and self.connecting == 0 and self.open == 0:
                    self._refuse(self._next_waiting(), "no descriptor is left for a connection")
                return 0
            # A backend that turns out to carry one call on a connection needs many at once.
            if self.other is None or self.connecting == before:
                return 0

    cdef bint _settle(self, Opening opening) except -1:
        """The connection is open, or will not come; False if that was known."""
        if opening.opened or opening.given_up:
            return False
        self.connecting -= 1
        self.openings.pop(opening, None)
        return True

    cdef int _give_up(self) except -1:
        """Ends the connect that has come least far."""
        cdef Opening opening = <Opening>self.openings.popitem()[0]
        self.connecting -= 1
        opening.given_up = True
        if not opening.begun:
            self.worker.budget.give_back()      # its task ends before it has begun
        opening.task.cancel()
        opening.task = None
        return 0

    async def _connect(self, Opening opening):
        cdef int64_t started = monotonic_ns()
        opening.begun = True
        try:
            await self._open(opening)
        except TimeoutError:
            self._connect_failed(opening, CONNECT_TIMED_OUT, "connect timeout", False)
        except NameResolutionError as error:
            self._connect_failed(opening, CONNECT_UNRESOLVED, str(error), False)
        except DestinationRefusedError as error:
            self._connect_failed(opening, CONNECT_FORBIDDEN, str(error), False)
        except OSError as error:
            self._connect_failed(opening, CONNECT_FAILED, describe(error), error.errno in OUT_OF_DESCRIPTORS)
        except BaseException as error:  # also a cancelled task: the call that waits must hear of it
            self._connect_failed(opening, CONNECT_FAILED, type(error).__name__, False)
            raise
        else:
            if not opening.opened:
                self.worker.budget.give_back()
            self._settle(opening)
            self._go_on()
            if self.connect_meter is not None:
                self.connect_meter(monotonic_ns() - started)
        finally:
            self.arriving.pop(opening.connection, None)
            opening.connection = opening.task = None

    async def _open(self, Opening opening):
        try:
            await self.connector(opening)
        except OSError as error:
            if error.errno not in OUT_OF_DESCRIPTORS or opening.opened or not self.worker.budget.ran_out(error.strerror):
                raise
            await asyncio.sleep(0)      # until what made room for it is closed
            await self.connector(opening)

    def _connect_failed(self, Opening opening, int failure, str detail, bint ours):
        cdef ResponseSink sink
        if not opening.opened:
            self.worker.budget.give_back()
        if not self._settle(opening):
            return
        self.failed += 1
        if self.waiting:
            sink = self._next_waiting()
            if ours:
                self._refuse(sink, detail)
            else:
                sink.on_connect_failed(failure, detail)
        self._go_on()

    # -- ConnectionOwner ---------------------------------------------------------------------------------------------
    cdef int connection_opened(self, ClientConnection connection) except -1:
        cdef object found = self.arriving.pop(connection, None)
        cdef Opening opening
        if found is not None:
            opening = <Opening>found
            if opening.given_up:
                # It came in the moment in which its connect was ended, which ends it too, and tells nobody.
                return connection.close()
            self._settle(opening)
            opening.opened = True
        else:
            self.worker.budget.count()
        connection.counted = True
        self.opened += 1
        self.open += 1
        return self._offer(connection)

    cdef int connection_free(self, ClientConnection connection) except -1:
        if len(self.waiting) and not connection.no_pending_input():
            # The end of the connection, or bytes nobody asked for, came right behind the response.
            return connection.close()
        return self._offer(connection)

    cdef bint wanted(self) noexcept:
        return len(self.waiting) > 0

    cdef int connection_closed(self, ClientConnection connection) except -1:
        if not connection.counted:
            return 0
        connection.counted = False
        self.open -= 1
        self.worker.budget.give_back()
        self._unlist(connection)
        return self._go_on()

    def shed_idle(self, int64_t most):
        """Closes idle connections, those used least recently first; returns how many."""
        cdef ClientConnection connection = self.newest
        cdef ClientConnection newer
        cdef int64_t found = 0
        if self.idle_count == 0 or connection is None:
            return 0
        while connection.older is not None:
            connection = connection.older
        while connection is not None and found < most:
            newer = connection.newer
            if connection.active == 0:
                self._unlist(connection)
                connection.close()
                found += 1
            connection = newer
        return found

    def close(self):
        """Closes what is idle; connections in a call close when it ends."""
        cdef ClientConnection connection
        if self.twin is not None:
            self.twin.close()
            self.twin = None          # it keeps this one for calls that wait until its backend has shown what it speaks
        if self.upgrading is not None:
            self.upgrading.close()
            self.upgrading = None
        self.closed = True
        self.worker.budget.leave(self)
        while self.newest is not None:
            connection = self.newest
            self._unlist(connection)
            if connection.active == 0:
                connection.close()


cdef bint enough_idle(Pool pool, ClientConnection connection) noexcept:
    """There are as many idle connections as are kept."""
    if pool.max_idle >= 0:
        return pool.idle_count >= pool.max_idle
    return pool.idle_count >= MOST_SPREAD and connection.capacity() > 1


def describe(error):
    """One line for a connect failure, without addresses of memory or Python class noise."""
    reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
    return str(reason) or type(error).__name__
