# The one interface between a request and what answers it: a host, the providers of a model, a handler in Python. The
# request (link/exchange) knows no kind of backend by name; a backend knows the request as a RoutedRequest.
#
# A Backend belongs to a plan and serves many requests at once: what it remembers of one is in the request (`call`) or in
# its context. Its methods may end the request; whoever calls one holds the request.

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.link.contract cimport RequestSink
from headgate_engine.link.endpoints cimport EndpointState
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.retries cimport Retries
from headgate_engine.link.tunnel cimport StreamTunnel
from headgate_engine.link.worker cimport Worker
from headgate_engine.plan.plans cimport BackendPlan, BindPlan, Destination, RoutePlan
from headgate_engine.plan.retry cimport RetryPlan
from headgate_engine.plan.tap cimport ResponseTap

cdef enum Dispatch:
    FORWARD = 0          # head and body go to the pool given to forward_to()
    REPLY = 1            # ctx.reply is the answer
    TAKEN = 2            # the backend answers by itself, now or later, with the answer methods of the request
    RUN_STEPS = 3        # another plan was chosen: its request steps run, then proceed() is called

cdef class RoutedRequest(RequestSink):
    cdef Worker worker
    cdef RequestContext ctx                  # None once the request is over
    cdef BindPlan bind
    cdef RoutePlan route
    cdef BackendPlan backend                 # the plan in force; a backend may put another in its place
    cdef Retries retries                     # None: a failed attempt is the answer
    cdef StreamTunnel tunnel                       # once both sides have switched protocols: upgraded() may watch it
    # -- what dispatch() may set --------------------------------------------------------------------------------------
    cdef ResponseTap tap                     # looks at the response body and may rewrite it; None: it passes as it comes
    cdef object call                         # what the backend keeps of a request that it has TAKEN

    # Where FORWARD goes. The endpoint learns how the attempt comes out; None: nobody watches.
    cdef int forward_to(self, Pool pool, EndpointState endpoint) except -1
    # forward_to() one of the plan's endpoints; False when none may be used.
    cdef bint pick_endpoint(self) except -1
    # Has failed attempts tried again by that plan; the request as it is now is what each attempt starts from.
    cdef int plan_retries(self, RetryPlan plan) except -1
    # Runs steps of the request: CONTINUE, or RESPOND with ctx.reply. One that raises answers 500.
    cdef int run_final_steps(self, tuple steps) except -1
    # Starts the clock of an attempt that the backend makes by itself; goes before TAKEN.
    cdef int start_own_attempt(self) except -1
    # Answers at once; an upstream call under way is given up.
    cdef int respond(self, Reply reply) except -1
    # -- the answer of a backend that has TAKEN the request; pairs of bytes as headers. RuntimeError when it is answered ---
    cdef int answer_whole(self, int status, object headers, bytes body, str reason) except -1
    cdef int answer_start(self, int status, object headers) except -1
    cdef int answer_send(self, bytes data) except -1
    cdef int answer_end(self) except -1
    cdef int answer_failed(self, str detail) except -1      # a fault of ours: 500, or a broken answer when it has begun
    cdef bint congested(self) noexcept                      # the client is slow: client_writable() follows

cdef class Backend(Destination):
    cdef readonly bint wants_body            # dispatch() finds the whole body in ctx.body
    cdef readonly bint serves_half_closed    # a client that stopped sending still gets its answer
    cdef readonly bint opens_tunnels         # it serves CONNECT, without a pool or endpoints of the plan
    cdef readonly Reply failure              # the answer to every request; None: the backend works
    cdef readonly Reply too_long             # the answer to a body over BackendPlan.max_body; None: the general one

    # Once per attempt, before the body is read: what must be remembered of the request as it came.
    cdef int prepare(self, RoutedRequest request) except -1
    # Whether dispatch() waits for the body of this request (of those whose backend reads bodies).
    cdef bint reads_body(self, RoutedRequest request) except -1
    # The pool of a connection that carries no HTTP, of a plan without one. `name`: that the client asks for in its TLS
    # handshake, None without one. Raises ValueError or OSError, which say why there is none.
    cdef Pool pool_of_name(self, str name, int port)
    # Says what becomes of the request (Dispatch). The head may be edited; `forwarded` fields are in it.
    cdef int dispatch(self, RoutedRequest request) except -1
    # Behind the steps of the plan that dispatch() chose (RUN_STEPS): FORWARD, REPLY or TAKEN.
    cdef int proceed(self, RoutedRequest request) except -1
    # -- an attempt ---------------------------------------------------------------------------------------------------
    cdef int answered(self, RoutedRequest request, int status) except -1
    cdef int attempt_failed(self, RoutedRequest request, str outcome) except -1    # broken, cancelled, failed, timeout
    cdef int attempt_ended(self, RoutedRequest request) except -1                  # another attempt takes its place
    cdef int stream_awaited(self, RoutedRequest request, object media_type) except -1   # tap.streaming; for the trace
    cdef int upgraded(self, RoutedRequest request) except -1
    # -- a request that it has TAKEN: told to its `call` (client_writable(), client_gone()) unless overridden -----------
    cdef int client_writable(self, RoutedRequest request) except -1
    cdef int client_gone(self, RoutedRequest request) except -1
    cdef int timed_out(self, RoutedRequest request) except -1
    # An answer of the gateway's own as clients of this backend read errors; also one from before the backend was chosen.
    cdef Reply own_answer(self, RequestContext ctx, Reply reply)
    # -- the end ------------------------------------------------------------------------------------------------------
    cdef int ended(self, RoutedRequest request) except -1

cdef class PoolBackend(Backend):
    # Forwards to the pool of one host, or to that of one of several endpoints.
    pass

cdef class InvalidBackend(Backend):
    # Answers its `failure`.
    pass
