"""Power of two choices over endpoints by health, latency and calls under way; ejection and return of sick ones.

The choice is that of Mitzenmacher, The Power of Two Choices in Randomized Load Balancing (2001). What is known of an
endpoint is in shared memory: all workers see the same health, count the same failures, and it survives a reload that
keeps the endpoint.
"""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.request cimport RequestContext
from headgate_engine.expr.program cimport Program
from headgate_engine.link.retry_after cimport NO_HINT, retry_after_ns
from headgate_engine.context.random cimport random_below
from headgate_engine.shared.lock cimport acquire, release
from headgate_engine.shared.segment cimport SLOT_ENDPOINT, Segment

from libc.math cimport log
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc

import hashlib

from headgate_engine.expr.values import EvaluationError

cdef double NOT_GIVEN = -1.0
cdef double ALPHA = 0.3
cdef int64_t DEFAULT_EJECTION_NS = 3000000000
# Tries to draw an endpoint that is in use before all are looked at.
cdef int DRAWS = 4


cdef inline uint64_t mix(uint64_t h) noexcept nogil:
    # The finalizer of MurmurHash3: every bit of the input reaches every bit of the output.
    h ^= h >> 33
    h *= <uint64_t>0xFF51AFD7ED558CCD
    h ^= h >> 33
    h *= <uint64_t>0xC4CEB9FE1A85EC53
    return h ^ (h >> 33)


cdef uint64_t hash_of(bytes text) except? 0:
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


cdef uint64_t affinity_of(object program, RequestContext ctx) except? 0:
    try:
        value = (<Program>program).evaluate(ctx)
    except EvaluationError:
        return 0
    raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return hash_of(raw) if isinstance(raw, bytes) and raw else 0


cdef double weight_for(uint64_t source, uint64_t own, uint32_t capacity) noexcept nogil:
    cdef double unit = (<double>(mix(source ^ own) >> 11) + 0.5) / 9007199254740992.0
    return -(<double>(capacity or 1)) / log(unit)


# What is known of an endpoint that has no place in a segment (made with __new__ alone).
cdef EndpointSlot nowhere


cdef class EndpointState:
    """One endpoint of the backend `owner` (its identity across reloads). worker: index of the worker that calls."""

    def __cinit__(self):
        self.slot = &nowhere

    def __init__(self, Segment segment not None, str owner, str key, bytes address=b"", pool=None, *, int capacity=1,
                 int worker=0):
        cdef EndpointSlot first
        cdef int column
        if capacity < 0:
            raise ValueError("a capacity is not negative")
        self.key = key
        self.address = address
        self.pool = pool
        self.capacity = capacity
        self.column = worker % COLUMNS
        self.mixed = hash_of(key.encode())
        first.lock = 0
        first.health = 1.0
        first.latency = 0.0
        first.total = first.failures = first.ejected = first.ejected_until_ns = 0
        for column in range(COLUMNS):
            first.pending[column] = 0
        self.held = segment.slot(
            b"endpoint\0%s\0%s" % (owner.encode(), key.encode()), SLOT_ENDPOINT, sizeof(EndpointSlot), &first)
        self.slot = <EndpointSlot*>self.held.memory

    cdef bint ejected(self, int64_t now_ns) noexcept nogil:
        return self.slot.ejected_until_ns > now_ns

    cdef double score(self) noexcept nogil:
        return self.slot.health / (1.0 + self.slot.latency * (1.0 + 0.1 * self.pending))

    cdef int begin(self) noexcept nogil:
        self.pending = self.pending + 1
        acquire(&self.slot.lock)
        self.slot.total = self.slot.total + 1
        self.slot.pending[self.column] = self.pending
        release(&self.slot.lock)
        return 0

    cdef int end(self) noexcept nogil:
        self.pending = self.pending - 1
        self.slot.pending[self.column] = self.pending
        return 0

    cdef int succeeded(self, double seconds) noexcept nogil:
        cdef EndpointSlot* slot = self.slot
        acquire(&slot.lock)
        slot.health = averaged(slot.health, 1.0)
        slot.latency = averaged(slot.latency, seconds)
        slot.failures = 0
        release(&slot.lock)
        return 0

    # -- Python face: dump, tests ------------------------------------------------------------------------------------
    def snapshot(self):
        """What is known of it: health 0..1, latency in s, pending and total requests, failures in a row, times ejected,
        and the time left outside in s (None: in use).
        """
        cdef EndpointSlot now
        cdef int64_t left
        cdef int column
        cdef int64_t pending = 0
        acquire(&self.slot.lock)
        now = self.slot[0]
        release(&self.slot.lock)
        left = now.ejected_until_ns - monotonic_ns()
        for column in range(COLUMNS):
            pending += now.pending[column]
        return {
            "health": now.health,
            "latency": now.latency,
            "pending": pending,
            "total": now.total,
            "failures": now.failures,
            "ejected": now.ejected,
            "left": left / 1e9 if left > 0 else None,
        }

    def reset_pending(self):
        """A worker that starts has no calls under way, whatever the one before it left behind."""
        if self.pending == 0:
            self.slot.pending[self.column] = 0


cdef inline double averaged(double value, double sample) noexcept nogil:
    return sample if value == 0.0 else value + ALPHA * (sample - value)


cdef class HealthPlan:
    """unhealthy: expression over the response. Times in seconds, None: not given. ValueError: health out of range."""

    def __init__(self, unhealthy=None, *, bint evicts=False, duration=None, backoff=None, consecutive=None, threshold=None,
                 restore=None, bint limited=False):
        for value in (threshold, restore):
            if value is not None and not 0.0 <= value <= 1.0:
                raise ValueError("health is between 0.0 and 1.0")
        self.unhealthy = unhealthy
        self.evicts = evicts
        self.limited = limited
        self.duration_ns = 0 if duration is None else <int64_t>(<double>duration * 1e9)
        self.backoff_ns = 0 if backoff is None else <int64_t>(<double>backoff * 1e9)
        self.consecutive = -1 if consecutive is None else consecutive
        self.threshold = NOT_GIVEN if threshold is None else threshold
        self.restore = NOT_GIVEN if restore is None else restore


cdef class EndpointSet:
    """The endpoints of one backend in one worker. affinity: expression whose value sticks to an endpoint."""

    def __cinit__(self):
        self.cumulative = NULL

    def __init__(self, endpoints, HealthPlan health=None, affinity=None):
        cdef uint64_t total = 0
        cdef Py_ssize_t index
        # One without capacity gets nothing, unless none has any.
        usable = tuple(one for one in endpoints if one.capacity) or tuple(endpoints)
        self.endpoints = usable
        self.health = health
        self.affinity = affinity
        if usable:
            self.cumulative = <uint64_t*>malloc(len(usable) * sizeof(uint64_t))
            if self.cumulative == NULL:
                raise MemoryError()
            for index in range(len(usable)):
                total += (<EndpointState>usable[index]).capacity or 1
                self.cumulative[index] = total
        self.total_capacity = total

    def __dealloc__(self):
        free(self.cumulative)

    cdef EndpointState sample(self):
        """One at random, by capacity."""
        cdef uint64_t ticket = random_below(self.total_capacity)
        cdef Py_ssize_t low = 0
        cdef Py_ssize_t high = len(self.endpoints) - 1
        cdef Py_ssize_t middle
        while low < high:
            middle = (low + high) // 2
            if self.cumulative[middle] <= ticket:
                low = middle + 1
            else:
                high = middle
        return <EndpointState>self.endpoints[low]

    cdef EndpointState usable(self, int64_t now_ns, EndpointState avoid):
        """One at random that is not ejected; None when all are."""
        cdef EndpointState found
        cdef Py_ssize_t count = len(self.endpoints)
        cdef Py_ssize_t start, index
        cdef int _draw
        for _draw in range(DRAWS):
            found = self.sample()
            if found is not avoid and not found.ejected(now_ns):
                return found
        start = <Py_ssize_t>random_below(<uint64_t>count)
        for index in range(count):
            found = <EndpointState>self.endpoints[(start + index) % count]
            if found is not avoid and not found.ejected(now_ns):
                return found
        return avoid if avoid is not None and not avoid.ejected(now_ns) else None

    cdef EndpointState pick(self, RequestContext ctx, EndpointState avoid):
        cdef int64_t now_ns
        cdef EndpointState one, other
        if len(self.endpoints) <= 1:
            if not self.endpoints:
                return None
            one = <EndpointState>self.endpoints[0]
            if self.health is not None and one.slot.ejected_until_ns:
                self.restored(one, monotonic_ns())
            return one
        now_ns = monotonic_ns()
        if self.health is not None:
            for one in self.endpoints:
                if one.slot.ejected_until_ns:
                    self.restored(one, now_ns)
        if self.affinity is not None:
            one = self.affine(ctx, now_ns, avoid)
            if one is not None:
                return one
        one = self.usable(now_ns, avoid)
        if one is None:
            # All are ejected: a sick endpoint is better than none.
            one, other = self.sample(), self.sample()
        else:
            other = self.usable(now_ns, avoid)
        return other if other.score() > one.score() else one

    def restored(self, EndpointState one not None, int64_t now_ns):
        """Returns an endpoint whose ejection is over to the choice."""
        cdef EndpointSlot* slot = one.slot
        # Nothing may raise while the lock is held.
        cdef double health = -1.0 if self.health is None else self.health.restore
        acquire(&slot.lock)
        if slot.ejected_until_ns and slot.ejected_until_ns <= now_ns:
            slot.ejected_until_ns = 0
            slot.failures = 0
            if health >= 0.0:
                slot.health = health
        release(&slot.lock)

    cdef EndpointState affine(self, RequestContext ctx, int64_t now_ns, EndpointState avoid):
        """The endpoint for the value of the affinity expression; None without a value."""
        cdef uint64_t source = affinity_of(self.affinity, ctx)
        cdef double best = -1.0
        cdef double weight
        cdef EndpointState one, found = None
        if source == 0:
            return None
        for one in self.endpoints:
            if one is avoid or one.ejected(now_ns):
                continue
            weight = weight_for(source, one.mixed, one.capacity)
            if weight > best:
                best = weight
                found = one
        return found

    # -- what came of a call -------------------------------------------------------------------------------------------
    cdef bint is_unhealthy(self, RequestContext ctx, int grpc_status) except -1:
        if self.health is not None and self.health.unhealthy is not None:
            return (<Program>self.health.unhealthy).test(ctx) == 1
        if self.health is not None and self.health.limited and ctx.response.status == 429:
            return True
        return ctx.response.status >= 500 or grpc_status > 0

    cdef int answered(self, EndpointState endpoint, RequestContext ctx, int grpc_status, int64_t taken_ns) except -1:
        cdef int64_t hint = NO_HINT
        if self.health is not None and ctx.response.status == 429:
            hint = retry_after_ns(ctx.response)
        if hint > 0 or self.is_unhealthy(ctx, grpc_status):
            return self.failed(endpoint, hint)
        return endpoint.succeeded(taken_ns / 1e9)

    cdef int failed(self, EndpointState endpoint, int64_t hint_ns) except -1:
        cdef HealthPlan plan = self.health
        cdef EndpointSlot* slot = endpoint.slot
        cdef int64_t now_ns = monotonic_ns()
        cdef int64_t base = 0
        cdef int64_t length
        cdef bint eject = False
        # Nothing below may raise: the lock is shared with other processes.
        if plan is not None:
            base = plan.duration_ns or plan.backoff_ns or DEFAULT_EJECTION_NS
        acquire(&slot.lock)
        slot.failures += 1
        if hint_ns > 0:
            eject = True
        elif plan is not None and plan.evicts:
            if plan.consecutive < 0 and plan.threshold < 0.0:
                eject = True
            elif plan.consecutive > 0 and slot.failures >= plan.consecutive:
                eject = True
            elif plan.threshold >= 0.0 and slot.health < plan.threshold:
                eject = True
        slot.health = slot.health + ALPHA * (0.0 - slot.health)
        if eject and slot.ejected_until_ns <= now_ns:
            if hint_ns >= 0 and (plan is None or not plan.duration_ns):
                length = hint_ns        # it said itself how long
            else:
                length = base * (slot.ejected + 1)
            slot.ejected_until_ns = now_ns + length
            if length:
                slot.ejected += 1
        release(&slot.lock)
        return 0

    # -- Python face ---------------------------------------------------------------------------------------------------
    def choose(self, RequestContext ctx=None, EndpointState avoid=None):
        """Python face of pick()."""
        return self.pick(ctx, avoid)

    def note(self, EndpointState endpoint not None, double seconds=-1.0, double hint=-1.0):
        """Python face: reports the outcome of a call, a success after `seconds` or a failure (seconds < 0)."""
        if seconds >= 0.0:
            endpoint.succeeded(seconds)
        else:
            self.failed(endpoint, NO_HINT if hint < 0.0 else <int64_t>(hint * 1e9))
