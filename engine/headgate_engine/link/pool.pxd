# Connections of one worker to one destination, and the calls that wait for one. A call gets a stream of a connection; the
# connection most recently used goes first, so that the others run into their idle time-out.

from headgate_engine.link.contract cimport ClientConnection, ConnectionOwner, ResponseSink, UpstreamProtocol
from headgate_engine.link.worker cimport Worker
from headgate_engine.shared.counters cimport Counter

from libc.stdint cimport int64_t

cdef class Pool

cdef class ClientPools:
    # The pools of backends that are to know whose each connection is: such a connection carries one client's calls.
    # The pool for the calls of a client's connection to the place of `pool`.
    cdef Pool pool_of(self, Pool pool, object connection)

cdef class Opening:
    # A connection that is being opened: makes it, as the factory that a connector gets.
    cdef Pool pool
    cdef ClientConnection connection         # the last one made; a connector may try several addresses
    cdef UpstreamProtocol chosen             # by the backend in the TLS handshake; None: it was not asked
    cdef object task
    cdef bint begun                          # the task runs
    cdef bint opened                         # it has become a connection of the pool
    cdef bint given_up                       # nobody waits for it any more

cdef class Pool(ConnectionOwner):
    cdef readonly str key                    # identity across reloads
    cdef readonly bytes endpoint             # host:port for logs
    cdef Worker worker
    cdef UpstreamProtocol protocol
    cdef object connector                    # async connector(factory) -> None; raises OSError or TimeoutError
    cdef ClientConnection newest             # list of the connections that can take a call
    cdef object openings                     # collections.OrderedDict: Opening -> None, that some call may wait for
    cdef dict arriving                       # ClientConnection -> its Opening
    cdef object waiting                      # collections.OrderedDict: ResponseSink -> None, in the order of their calls
    cdef public int64_t idle_timeout_ns
    cdef public int64_t max_idle             # idle connections kept; below 0: all
    cdef public int64_t max_connections      # open and opening; 0: unlimited
    cdef public int64_t max_waiting          # calls that wait at a time
    cdef readonly int64_t opened, failed, open, connecting
    cdef readonly int64_t idle_count         # connections without a call in progress
    cdef readonly int64_t refused            # calls that found max_waiting others waiting
    cdef readonly bint closed
    cdef public object connect_meter         # gets the time of each connect in ns
    # The pool for HTTP/2 to the same destination, of calls whose protocol is that of their client; made by `make_twin`, a
    # function without arguments, when it is first needed. None: all calls go through this pool.
    cdef Pool twin
    # Of a twin: the pool that it is one of, and when HTTP/2 is tried again with a backend that does not speak it (ns).
    cdef Pool plain
    cdef int64_t spurned_ns
    # Of a twin: open connections whose backend has not shown yet that it speaks HTTP/2. They carry no calls.
    cdef int64_t unproven
    cdef public object make_twin
    cdef public bint twin_for_grpc           # only gRPC goes through the twin: the backend has TLS
    # What a backend may choose in the TLS handshake (ALPN) instead of `protocol`; None: it has no choice. Connections of both
    # kinds may then lie in the pool. `chose_plain`: the last one that was opened speaks `protocol`.
    cdef public UpstreamProtocol other
    cdef bint chose_plain
    # The pool for upgrades, made by `make_upgrading`, a function without arguments: what carries them must not be a choice.
    # None: they go through this pool.
    cdef Pool upgrading
    cdef public object make_upgrading
    cdef public ClientPools clients          # None: connections are shared by all clients
    cdef public Counter refusals             # counts `refused` for all pools; None: nobody does

    # The call gets on_connected() now (True) or later (False), or on_connect_failed() now or later, or on_refused() now (False).
    # `fresh`: a kept connection is not good enough; `probe`: look whether the peer closed it in the meantime.
    cdef bint acquire(self, ResponseSink sink, bint fresh, bint probe) except -1
    # The pool for calls over HTTP/2, or this one.
    cdef Pool for_http2(self)
    # The pool for upgrades of HTTP/1.1, or this one.
    cdef Pool for_upgrades(self)
    # Calls that a new connection is expected to carry.
    cdef int _streams(self) except -1
    # The backend of a connection that counts in `unproven` speaks HTTP/2.
    cdef int proven(self, ClientConnection connection) except -1
    # It does not: calls of a twin, those that wait as well, go through the plain pool for a while.
    cdef int spurn(self) except -1
    # The call does not wait any more. A connect that no other call waits for ends.
    cdef int withdraw(self, ResponseSink sink) except -1
    cdef ClientConnection _find(self, bint probe)
    cdef int _begin(self, ClientConnection connection, ResponseSink sink) except -1
    cdef ResponseSink _next_waiting(self)
    cdef int _offer(self, ClientConnection connection) except -1
    cdef int _list(self, ClientConnection connection) except -1
    cdef int _unlist(self, ClientConnection connection) except -1
    # False: a connection is needed, and no descriptor is left for it.
    cdef bint _refill(self) except -1
    # The same when nobody hears of it: without a connection to come, the calls that wait are refused.
    cdef int _go_on(self) except -1
    cdef int _refuse(self, ResponseSink sink, str detail) except -1
    cdef bint _settle(self, Opening opening) except -1
    cdef int _give_up(self) except -1
