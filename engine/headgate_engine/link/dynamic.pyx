"""Backends whose destination each request names; see dynamic.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport H_PROXY_AUTHORIZATION, HEAD_CONNECT, MessageHead
from headgate_engine.expr.program cimport Program
from headgate_engine.link.backend cimport FORWARD, REPLY, Backend, RoutedRequest
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.reasons cimport (
    REPLY_DESTINATION_REFUSED, REPLY_INVALID_REQUEST, REPLY_PROCESSING_FAILED, REPLY_UPSTREAM_FAILED)
from headgate_engine.link.response cimport with_detail
from headgate_engine.link.worker cimport Worker
from headgate_engine.plan.step cimport CONTINUE

from headgate_engine.errors import DestinationRefusedError
from headgate_engine.expr.values import EvaluationError

import collections
import errno


cdef class Destinations(Timer):
    def __init__(self, Worker worker not None, settle not None, open not None, double rest):
        self.worker = worker
        self.settle = settle
        self.open = open
        self.pools = collections.OrderedDict()
        self.spellings = {}
        self.rest_ns = <int64_t>(rest * 1e9)
        self.most = MOST_DESTINATIONS

    cdef Pool find(self, bytes authority):
        cdef Pool pool = <Pool>self.spellings.get(authority)
        if pool is None or pool.closed:
            pool = self.learn(authority)
        self.pools.move_to_end(pool.endpoint)
        return pool

    cdef Pool learn(self, bytes authority):
        """The pool of a destination that was not written in this way before."""
        cdef bytes place = <bytes?>self.settle(authority)
        cdef Pool pool = <Pool>self.pools.get(place)
        if pool is None:
            if len(self.pools) >= self.most:
                self.make_room()
            pool = <Pool?>self.open(place)
            if pool.endpoint != place:
                raise ValueError("the pool is that of another place")
            self.pools[place] = pool
            if self.heap_index < 0:
                self.worker.timers.arm(self, monotonic_ns() + self.rest_ns)
        if len(self.spellings) >= MOST_SPELLINGS:
            self.spellings.clear()
        self.spellings[authority] = pool
        return pool

    cdef int make_room(self) except -1:
        """Closes the pool least recently used among those that have no call."""
        cdef Pool pool
        cdef int looked = 0
        for place, found in self.pools.items():
            pool = <Pool>found
            if not in_use(pool):
                del self.pools[place]
                pool.close()
                return 0
            looked += 1
            if looked >= LOOKED_AT:
                break
        raise OSError(errno.ENOBUFS, "too many destinations are in use")

    cdef int on_timer(self, int64_t now_ns) except -1:
        cdef Pool pool
        for place, found in list(self.pools.items()):
            pool = <Pool>found
            if not connected(pool):
                del self.pools[place]
                pool.close()
        self.spellings = {written: pool for written, pool in self.spellings.items() if not (<Pool>pool).closed}
        if self.pools:
            self.worker.timers.arm(self, now_ns + self.rest_ns)
        return 0

    # -- Python face ---------------------------------------------------------------------------------------------------
    def pool(self, bytes authority not None):
        return self.find(authority)

    @property
    def count(self):
        return len(self.pools)

    def close(self):
        self.worker.timers.remove(self)
        for pool in self.pools.values():
            (<Pool>pool).close()
        self.pools.clear()
        self.spellings.clear()


cdef bint in_use(Pool pool) noexcept:
    """Whether a call is under way or waits."""
    if pool.connecting or pool.open > pool.idle_count or len(pool.waiting):
        return True
    return pool.twin is not None and in_use(pool.twin) or pool.upgrading is not None and in_use(pool.upgrading)


cdef bint connected(Pool pool) noexcept:
    """Whether there is a connection, or a call that waits for one."""
    if pool.connecting or pool.open or len(pool.waiting):
        return True
    return pool.twin is not None and connected(pool.twin) or pool.upgrading is not None and connected(pool.upgrading)


cdef class DestinationBackend(Backend):
    def __init__(self, Destinations requests, Destinations tunnels, Program target=None, int default_port=80):
        self.requests = requests
        self.tunnels = tunnels
        self.target = target
        self.default_port = default_port
        self.serves_half_closed = True
        self.opens_tunnels = tunnels is not None

    cdef int dispatch(self, RoutedRequest request) except -1:
        cdef MessageHead head = request.ctx.head
        cdef bint tunnel = head.flags & HEAD_CONNECT != 0
        cdef Destinations places = self.tunnels if tunnel else self.requests
        cdef Pool pool
        cdef bytes authority
        try:
            pool = places.find(self.authority_of(request))
        except EvaluationError as error:
            return self.refuse(request, REPLY_PROCESSING_FAILED, str(error), True)
        except DestinationRefusedError as error:
            return self.refuse(request, REPLY_DESTINATION_REFUSED, str(error), False)
        except OSError as error:
            return self.refuse(request, REPLY_UPSTREAM_FAILED, error.strerror, True)
        except ValueError as error:
            if self.target is not None:
                return self.refuse(request, REPLY_PROCESSING_FAILED, str(error), True)
            return self.refuse(request, REPLY_INVALID_REQUEST, str(error), False)
        if self.target is not None and not tunnel and not request.route.keep_authority:
            authority = name_of(pool.endpoint, self.default_port)
            if authority is not None:
                head.set_authority(authority, len(authority))
        # It was for this proxy (RFC 9110 section 11.7.2).
        head.drop_id(H_PROXY_AUTHORIZATION)
        request.forward_to(pool, None)
        # Signatures are made of the request as it leaves.
        if request.backend.final_steps and request.run_final_steps(request.backend.final_steps) != CONTINUE:
            return REPLY
        return FORWARD

    cdef Pool pool_of_name(self, str name, int port):
        if name is None:
            raise ValueError("the client names no server")
        return self.tunnels.find(f"{name}:{port}".encode("ascii", "replace"))

    cdef bytes authority_of(self, RoutedRequest request):
        cdef MessageHead head = request.ctx.head
        if self.target is None:
            return head.data[head.authority_off:head.authority_off + head.authority_len]
        value = self.target.evaluate(request.ctx)
        if not isinstance(value, str):
            raise EvaluationError("the target is no text")
        return (<str>value).encode("utf-8", "surrogateescape")

    cdef int refuse(self, RoutedRequest request, int reply, str detail, bint told) except -1:
        """`told`: the client also gets the reason."""
        answer = request.worker.reply(reply)
        request.ctx.error = detail
        request.ctx.reply = with_detail(answer, detail) if told else answer
        return REPLY


cdef bytes name_of(bytes place, int default_port):
    """The authority of a place with a name, without the default port; None for an address."""
    host, _, port = place.rpartition(b":")
    if host.startswith(b"[") or host.replace(b".", b"").isdigit():
        return None
    return host if int(port) == default_port else place
