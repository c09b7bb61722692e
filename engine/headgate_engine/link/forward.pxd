# One request on its way: picks the route, runs the steps, and joins the client's stream to an upstream's. A Sink for
# both. No coroutine, future or task is made on the plain path.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.mark cimport HeadMark
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.link.endpoints cimport Endpoint
from headgate_engine.link.contract cimport ClientStream, ServerStream, Sink
from headgate_engine.link.timers cimport Timer
from headgate_engine.link.worker cimport Worker
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.plan.plans cimport BackendPlan, BindPlan, ListenerPlan, RoutePlan
from headgate_engine.plan.retry cimport RetryPlan
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

# Where a request stands between its head and its backend. The runner goes down this list; a step that suspends is
# continued in the same stage.
cdef enum Stage:
    STAGE_LISTENER = 0
    STAGE_GATEWAY_STEPS = 1
    STAGE_ROUTE = 2
    STAGE_ROUTE_STEPS = 3
    STAGE_BACKEND = 4
    STAGE_BACKEND_STEPS = 5
    STAGE_DISPATCH = 6
    STAGE_BODY = 7           # waiting for the whole request body
    STAGE_CONNECT = 8        # waiting for an upstream connection
    STAGE_FORWARD = 9        # request is going upstream
    STAGE_RESPONSE = 10      # response head has come, or a handler answers
    STAGE_TUNNEL = 11
    STAGE_DONE = 12

cdef class ExchangeTimer(Timer):
    cdef Exchange exchange

cdef class Exchange(Sink):
    cdef Worker worker
    cdef ServerStream client
    cdef ClientStream upstream
    cdef RequestContext ctx
    cdef BindPlan bind
    cdef ListenerPlan listener
    cdef RoutePlan route
    cdef BackendPlan backend
    cdef object pool
    cdef BackendPlan entry           # what the route chose: all attempts go there
    cdef Endpoint endpoint           # of the attempt, where the backend has several
    cdef bint judged, left           # it knows what came of the attempt; it counts it no more
    cdef int64_t attempt_started
    cdef object inspected            # what reads a tunnel: headgate.backend.llm.guards.realtime.GuardedTunnel, or None
    cdef object call                 # the handler's side of this request (link.handler.HandlerCall)
    cdef int stage
    cdef bint suspended
    cdef ByteBuffer pending          # request body not yet upstream
    cdef bint chosen                 # an LLM provider was: `backend` is its plan
    cdef bint awaiting               # the response head waits for the first event, or the whole body (tap)
    cdef ResponseTap tap
    cdef ByteBuffer tapped
    cdef ExchangeTimer timer
    cdef int64_t request_deadline, attempt_deadline
    # -- a step that waits for the request body
    cdef bint waiting_body
    # -- retry: what an attempt starts from
    cdef RetryPlan retry             # of the route, or of a model's providers
    cdef int retries_left, retried
    cdef int64_t backoff_until
    cdef HeadMark mark               # the request behind the route steps
    cdef bytes first_body            # ctx.body there
    cdef ByteBuffer replay           # request bytes that went upstream, while they may be sent again
    # -- a response that steps want whole
    cdef ByteBuffer held             # None: it is passed on as it comes
    cdef int64_t hold_limit
    cdef bint hold_strict
    # -- guards that are asked about the answer
    cdef bint asking                 # nothing goes on until they have answered
    cdef bint answer_ended           # the upstream has said all
    cdef bint tap_finished
    cdef MessageHead trailers
    cdef bint request_done           # the whole request has come from the client
    cdef bint body_lost              # bytes of the request body are gone: it cannot be sent again
    cdef bint response_done
    cdef bint informed               # 100-continue was sent
    cdef bint abandoned              # the client's connection is gone, or done with this request
    cdef bint broken                 # a response step raised: none runs any more
    cdef MessageHead request_trailers

    cdef int start(self, BindPlan bind) except -1
    cdef int advance(self) except -1
    cdef int respond(self, Reply reply) except -1
    cdef int _run_steps(self, tuple steps) except -1
    cdef int _pick_listener(self) except -1
    cdef int _pick_route(self) except -1
    cdef int _pick_backend(self) except -1
    cdef int _dispatch(self) except -1
    cdef bint _body_ready(self) except -1
    cdef bint _await_body(self) except -1
    cdef int _body_came(self) except -1
    cdef int _prepare_retry(self) except -1
    cdef bint _retry(self) except -1
    cdef int _sent_on(self, const char* p, Py_ssize_t n) except -1
    cdef bint _hold_response(self, MessageHead head) except -1
    cdef int _release_response(self) except -1
    cdef int _hold(self, const char* p, Py_ssize_t n) except -1
    cdef int _want_body(self) except -1
    cdef int _body_complete(self) except -1
    cdef int _prepare_failover(self) except -1
    cdef int _choose_provider(self) except -1
    cdef int _call_provider(self) except -1
    cdef int _note(self, str outcome) except -1
    cdef int _await_answer(self) except -1
    cdef int _answer_begins(self) except -1
    cdef bint _answer_fails(self, str detail) except -1
    cdef int _stream_broke(self, str detail) except -1
    cdef int _stream_told(self, ByteBuffer out) except -1
    cdef int _open_response(self, MessageHead head) except -1
    cdef int _stalled(self, int64_t now_ns) except -1
    cdef int _connect(self, bint fresh) except -1
    cdef bint _pick_endpoint(self) except -1
    cdef int _endpoint_answered(self, MessageHead trailers) except -1
    cdef int _endpoint_failed(self) except -1
    cdef int _leave_endpoint(self) except -1
    cdef int _send_request(self) except -1
    cdef int _choose_request_mode(self, int64_t* length) noexcept
    cdef int _choose_response_mode(self, MessageHead head, int64_t* length) noexcept
    cdef bint _response_steps(self) except -1
    cdef int _run_response_steps(self) except -1
    cdef int _guarded_steps(self, tuple steps) except -1
    cdef int _begin_response(self, MessageHead head, int mode, int64_t length) except -1
    cdef ByteBuffer tapped_out(self)
    cdef int _tap_fed(self) except -1
    cdef int _end_answer(self) except -1
    cdef int _forget_guards(self) except -1
    cdef int _ask_guards(self) except -1
    cdef int _start_attempt(self) except -1
    cdef int _arm(self) except -1
    cdef int _unanswered(self) except -1
    cdef int _timed_out(self, int64_t now_ns) except -1
    cdef int _finish(self, bint clean) except -1
    cdef int _drop_upstream(self) except -1

cdef Exchange new_exchange(Worker worker, ServerStream client, MessageHead head, int64_t now_ns)
