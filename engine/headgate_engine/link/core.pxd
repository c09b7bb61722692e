# A request as its parts see it: its state, its deadlines, and what they may ask of it. link/exchange implements it. The parts:
#
#   attempt    UpstreamAttempt    one try at a backend: connect, send, receive; what its endpoint learns
#   retries    Retries            what an attempt starts from, and how many are left
#   collector  BodyCollector      a request body that steps or the backend read, or that waits for a connection
#   tapped     TappedResponse     a response that a tap reads or rewrites, and guards that are asked about it
#   held       HeldResponse       a response that steps want whole
#   tunnel     StreamTunnel       an upgraded connection
#   observer   RequestObserver    who watches
#   filter     StreamFilter       what stands between the request and its client
#
# A request has those that it needs. Each is held by the request; those that call back (attempt, tunnel, deadlines) hold the
# request while they are under way, and let go of it at their end.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply
from headgate_engine.link.backend cimport Backend, RoutedRequest
from headgate_engine.link.collector cimport BodyCollector
from headgate_engine.link.contract cimport ClientStream, ServerStream
from headgate_engine.link.filter cimport StreamFilter
from headgate_engine.link.held cimport HeldResponse
from headgate_engine.link.observer cimport RequestObserver
from headgate_engine.link.timers cimport Timer
from headgate_engine.plan.plans cimport ListenerPlan

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

cdef class Deadlines(Timer):
    # Times of CLOCK_MONOTONIC in ns; 0: none.
    cdef RequestCore request             # None once it is over
    cdef int64_t whole                   # of the request, until its response begins
    cdef int64_t attempt                 # of the attempt; while it responds: of its next bytes
    cdef int64_t backoff                 # end of the pause between two attempts
    cdef int64_t first(self) noexcept    # the earliest

cdef class RequestCore(RoutedRequest):
    cdef ServerStream client             # None once the request is over
    cdef ListenerPlan listener
    cdef Backend destination             # what answers, once the route has chosen; None before
    cdef bint rerouted                   # the backend put another plan in the place of the route's (RUN_STEPS)
    cdef int phase                       # Phase
    cdef int state                       # link.states.RequestState
    cdef int64_t sent_ns                 # when the first part of a response that goes on was on its way; 0: not yet
    cdef bint broken                     # a response step raised: none runs any more
    cdef bint request_done               # the whole request has come from the client
    cdef bint client_ended               # the client has shut down its side of the connection, and still reads
    cdef BodyCollector collector         # None: no part of the body waits
    cdef HeldResponse held               # None: the response goes on as it comes
    cdef Deadlines deadlines             # None: there is no limit
    cdef RequestObserver observer        # None: nobody watches
    cdef StreamFilter filter             # the first of those between the request and its client; None: there is none

    # -- state -------------------------------------------------------------------------------------------------------
    # Takes an event; False when the table refuses it: it comes too late.
    cdef bint move(self, int event) noexcept
    # The response head is kept back; a response is under way; guards are being asked about it.
    cdef bint awaiting(self) noexcept
    cdef bint responding(self) noexcept
    cdef bint asking_guards(self) noexcept
    # -- deadlines ---------------------------------------------------------------------------------------------------
    cdef Deadlines limits(self)
    cdef int arm(self) except -1
    cdef int disarm(self) except -1
    # An attempt begins, now: from here on its time runs.
    cdef int64_t start_clock(self) except -1
    # The response is a stream: its first event has a time of its own.
    cdef int await_first_event(self) except -1
    cdef int on_deadline(self, int64_t now_ns) except -1
    # Sends the request to what forward_to() was given.
    cdef int connect(self) except -1
    # -- the request body (link/intake) --------------------------------------------------------------------------------
    # What a step waits for is in ctx.body, or all that the backend waits for.
    cdef int body_came(self) except -1
    cdef int body_complete(self) except -1
    # The request body and its end, as filters have let them through.
    cdef int take_request_data(self, const char* p, Py_ssize_t n) except -1
    cdef int take_request_end(self, MessageHead trailers) except -1
    # What answers may send more: the client takes it, or the filter before it.
    cdef int source_writable(self) except -1
    # -- events of the attempt ---------------------------------------------------------------------------------------
    cdef int connect_failed(self, int failure, str detail) except -1         # link.contract.ConnectFailure
    # `repeatable`: the backend has done nothing for it, and a new connection may carry it.
    cdef int attempt_failed(self, bint bytes_seen, bint repeatable, str detail) except -1
    # The head of a response: gives the attempt the pipe through which the rest goes, unless it is over by then.
    cdef int response_head(self, MessageHead head) except -1
    cdef int upgraded(self, ClientStream stream) except -1
    # -- the attempt, for the response ---------------------------------------------------------------------------------
    cdef int drop_attempt(self) except -1
    cdef int pause_upstream(self) except -1
    cdef int resume_upstream(self) except -1
    cdef int note_outcome(self, str outcome) except -1
    # A good head was not the whole story: the endpoint has failed after all.
    cdef int blame_endpoint(self) except -1
    cdef bint may_retry(self) noexcept
    # Nothing of the response has reached the client: another attempt, or an answer that says what happened; None: the
    # general one.
    cdef int response_failed(self, str detail, Reply reply) except -1
    # -- the end -------------------------------------------------------------------------------------------------------
    cdef int finish(self, int ending) except -1
