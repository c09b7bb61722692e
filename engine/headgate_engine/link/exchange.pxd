# One request on its way: its state, the answers that the gateway makes itself, and its end. Its classes are layers, each
# the base of the next, so that calls go straight through the C table of the one object:
#
#   exchange  ExchangeState   state, steps, own answers, the end
#   tunnel    Tunnelling      upgraded connections
#   answer    Answering       from the backend's response head to the client's last byte
#   attempt   Attempting      connect, send, fail, retry
#   forward   Exchange        from the request head to the backend; what everybody else sees
#
# A Sink for both connections. No coroutine, future or task is made on the plain path.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.link.backend cimport Backend, RoutedRequest
from headgate_engine.link.contract cimport ClientStream, ServerStream
from headgate_engine.link.timers cimport Timer
from headgate_engine.plan.plans cimport ListenerPlan
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

# Where a request that is RUNNING (link/states) stands; one that was suspended goes on in the same phase.
cdef enum Phase:
    PHASE_LISTENER = 0
    PHASE_GATEWAY_STEPS = 1
    PHASE_ROUTE = 2
    PHASE_ROUTE_STEPS = 3
    PHASE_BACKEND = 4
    PHASE_BACKEND_STEPS = 5
    PHASE_DISPATCH = 6

# How a request leaves its client.
cdef enum Ending:
    END_CLEAN = 0            # the whole answer is on its way
    END_BROKEN = 1           # the connection breaks, which tells the client that the rest is missing
    END_ABANDONED = 2        # the connection has let go of the request already

cdef class ExchangeTimer(Timer):
    cdef ExchangeState exchange

cdef class ExchangeState(RoutedRequest):
    cdef ServerStream client
    cdef ClientStream upstream
    cdef ListenerPlan listener
    cdef Backend destination         # what answers, once the route has chosen; None before
    cdef int state                   # link.states.RequestState
    cdef int phase
    cdef bint endpoint_reported      # the endpoint knows what came of the attempt
    cdef bint endpoint_released      # it counts the attempt no more
    cdef ExchangeTimer timer
    cdef int64_t attempt_started, request_deadline, attempt_deadline, backoff_until
    cdef ByteBuffer held             # a response that steps want whole; None: it is passed on as it comes
    cdef bint request_done           # the whole request has come from the client
    cdef bint continue_sent          # 100 (Continue)
    cdef bint broken                 # a response step raised: none runs any more

    cdef int _run_steps(self, tuple steps) except -1
    cdef int _guarded_steps(self, tuple steps) except -1
    cdef int _note(self, str outcome) except -1
    cdef int _endpoint_answered(self, MessageHead trailers) except -1
    cdef int _endpoint_failed(self) except -1
    cdef int _leave_endpoint(self) except -1
    cdef int _arm(self) except -1
    cdef bint _response_steps(self) except -1
    cdef int _run_response_steps(self) except -1
    cdef int _response_size(self, MessageHead head, int64_t* length) noexcept
    cdef int _begin_response(self, MessageHead head, int size, int64_t length) except -1
    cdef int _unanswered(self) except -1
    cdef int _drop_upstream(self) except -1
    cdef int _finish(self, int ending) except -1
    # Takes an event; False when the table refuses it: it comes too late.
    cdef bint _move(self, int event) noexcept
    # The response head is kept back; a response is under way.
    cdef bint awaiting(self) noexcept
    cdef bint responding(self) noexcept
    cdef bint asking_guards(self) noexcept
    # What the layers above do.
    cdef int advance(self) except -1
    cdef bint _retry(self) except -1
    cdef int _timed_out(self, int64_t now_ns) except -1

cdef Reply with_detail(Reply reply, str detail)
