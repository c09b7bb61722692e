# Several endpoints behind one backend: who gets the next request, and who is left alone for a while.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.shared.segment cimport SlotRef

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum:
    # Workers that have a column of their own for calls under way; others share them.
    COLUMNS = 32

cdef struct EndpointSlot:
    # One endpoint of one backend, shared by all workers.
    uint64_t lock
    double health                # moving average, 0..1
    double latency               # moving average of successes in seconds, 0: none yet
    int64_t total                # requests started
    int64_t failures             # in a row
    int64_t ejected              # times
    int64_t ejected_until_ns     # CLOCK_MONOTONIC; 0: in use
    uint32_t pending[COLUMNS]    # calls under way, by worker

cdef class EndpointState:
    cdef readonly str key
    cdef readonly uint32_t capacity          # its share of the picks
    cdef public object pool
    cdef public object tcp_pool              # of connections that speak no HTTP; None: no listener forwards such
    cdef readonly bytes address
    cdef SlotRef held                        # keeps the slot
    cdef EndpointSlot* slot
    cdef int column
    cdef int pending                         # of this worker
    cdef uint64_t mixed                      # hash of the key, for affinity
    cdef bint ejected(self, int64_t now_ns) noexcept nogil
    cdef double score(self) noexcept nogil
    cdef int begin(self) noexcept nogil
    cdef int end(self) noexcept nogil
    cdef int succeeded(self, double seconds) noexcept nogil

cdef class HealthPlan:
    cdef readonly object unhealthy           # expr.program.Program, None: 5xx or a gRPC status other than 0
    cdef readonly bint evicts                # an eviction block was given
    cdef readonly bint limited               # 429 is a failure too, whatever it says about when to come back
    cdef readonly int64_t duration_ns        # 0: not given
    cdef readonly int64_t backoff_ns         # of the route's retries, used when no duration is given
    cdef readonly int64_t consecutive        # -1: not given; 0: never ejects
    cdef readonly double threshold           # < 0: none
    cdef readonly double restore             # < 0: health stays as it was

# Rendezvous hashing: the hash of what an expression says of a request (0: nothing, or it fails), and what it weighs for
# a choice with this hash of its own and this capacity. The heaviest gets the request, so a choice that goes moves only
# what was its own.
cdef uint64_t hash_of(bytes text) except? 0
cdef uint64_t affinity_of(object program, RequestContext ctx) except? 0
cdef double weight_for(uint64_t source, uint64_t own, uint32_t capacity) noexcept nogil

cdef class EndpointSet:
    cdef readonly tuple endpoints
    cdef readonly HealthPlan health          # None: only scores
    cdef readonly object affinity            # expr.program.Program, None: none
    cdef uint64_t total_capacity
    cdef uint64_t* cumulative
    # None without endpoints. `avoid` failed just now: another one is taken where there is one.
    cdef EndpointState pick(self, RequestContext ctx, EndpointState avoid)
    cdef EndpointState sample(self)
    cdef EndpointState usable(self, int64_t now_ns, EndpointState avoid)
    cdef EndpointState affine(self, RequestContext ctx, int64_t now_ns, EndpointState avoid)
    # What came of a call: its response head (grpc_status -1: not known), or no answer at all.
    cdef int answered(self, EndpointState endpoint, RequestContext ctx, int grpc_status, int64_t taken_ns) except -1
    cdef int failed(self, EndpointState endpoint, int64_t hint_ns) except -1
    cdef bint is_unhealthy(self, RequestContext ctx, int grpc_status) except -1
