# One MCP call that the engine makes by itself. It may be handed over to the handler in Python at any time before the
# client has got anything.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.link.backend cimport RoutedRequest
from headgate_engine.link.client cimport ClientCall
from headgate_engine.link.timers cimport Timer
from headgate_engine.mcp.sessions cimport SessionEntry, TargetSession
from headgate_engine.mcp.settings cimport CallSettings, DirectTarget
from headgate_engine.mcp.telemetry cimport RequestTelemetry
from headgate_engine.peek.rpc cimport RpcMessage
from headgate_engine.sse.decode cimport SseDecoder

from libc.stdint cimport int64_t

cdef class DirectTimer(Timer):
    cdef DirectCall call

cdef enum Phase:
    PHASE_WAITING = 0                # no head of an answer yet
    PHASE_WHOLE = 1                  # one JSON message comes
    PHASE_STREAM = 2                 # events come and go on
    PHASE_HANDED_OVER = 3            # Python has it
    PHASE_OVER = 4

# Federated calls go to the target that the name of a tool or prompt leads to, under its own name there. Their answers are
# read; one that needs more than to be passed on, and every stream, is for Python.
cdef class DirectCall(ClientCall):
    cdef CallSettings settings
    cdef RoutedRequest exchange
    cdef RpcMessage message             # the client's
    cdef SessionEntry session
    cdef DirectTarget target
    cdef TargetSession place_there   # the session at the target
    cdef str target_name             # federated calls: the target,
    cdef str plain_name              # and what the call is about, by the name that the target knows
    cdef int phase
    cdef readonly Reply refusal      # with which a policy in front of the target answered
    cdef object successor            # link.handler.HandlerCall that has taken over
    cdef RequestTelemetry telemetry
    cdef bytes last                  # of what the client got, for the telemetry
    cdef int status
    cdef bint timed_out
    cdef bint names_session          # the answer does
    cdef DirectTimer timer
    cdef int64_t started, deadline   # deadline 0: the target has all the time
    cdef SseDecoder decoder
    cdef list answers                # data of the last events that may be the response

    # `name`: what the call is about, as the target knows it. False where only Python can make its head.
    cdef bint make_head(self, str name, tuple without) except -1
    cdef int launch(self) except -1
    cdef bint _run_steps(self) except -1
    cdef int _hand_over(self) except -1
    cdef int _classify(self) except -1
    cdef int _arm(self) except -1
    cdef int _disarm(self) except -1
    cdef int _begin_telemetry(self) except -1
    cdef list _fields(self)
    cdef int _leave(self) except -1
    cdef int _answer_whole(self) except -1
    cdef RpcMessage _response(self, bytes body)
    cdef int _begin_stream(self) except -1
    cdef int _stream(self, const char* p, Py_ssize_t n) except -1
    cdef bytes _passed(self, bytes raw, bytes data)
    cdef int _end_stream(self) except -1
    cdef int _stream_lost(self, str detail) except -1
    cdef int _finish_stream(self, str reason, bint broken) except -1
    cdef int _send(self, bytes data) except -1
    cdef int _broke(self, error) except -1

cdef DirectCall new_call(
    CallSettings settings, RoutedRequest exchange, RpcMessage message, SessionEntry session, DirectTarget target)
