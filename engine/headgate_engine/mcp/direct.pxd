# MCP calls that need no Python: a request within a session at one StreamableHTTP server whose answer is one JSON message
# or a stream of events. Everything else goes to the handler in Python, at any time before the client has got anything.
#
#   who answers                      when
#   DirectCall                       POST, a plain head (mcp/fields), a known session, any request but `initialize`,
#                                    nobody traces it, and the target answers with 2xx
#   Python, from the beginning       all others
#   Python, with the call begun      a refusal, a failure, a time-out, an answer in a content coding, another session id

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.link.backend cimport Backend, RoutedRequest
from headgate_engine.link.client cimport ClientCall, HttpClient
from headgate_engine.link.handler cimport HandlerBackend
from headgate_engine.link.timers cimport Timer
from headgate_engine.mcp.fields cimport ClientHead
from headgate_engine.mcp.telemetry cimport RequestTelemetry
from headgate_engine.peek.rpc cimport Message
from headgate_engine.sse.decode cimport SseDecoder

from libc.stdint cimport int64_t

cdef class DirectTarget:
    cdef HttpClient client
    cdef bytes path
    cdef tuple steps                 # Step of its policies; none of them suspends
    cdef int64_t timeout_ns          # until the head of an answer, or the whole of one that is no stream; 0: none

cdef class DirectBackend(Backend):
    cdef HandlerBackend handler      # for what is not plain
    cdef readonly DirectTarget target
    cdef object service              # headgate.backend.mcp.direct_service.DirectService
    cdef object sessions             # headgate.backend.mcp.session.Sessions of the service
    cdef ClientHead client_head
    cdef DirectCall _plain(self, RoutedRequest exchange)

cdef class DirectTimer(Timer):
    cdef DirectCall call

cdef enum Phase:
    PHASE_WAITING = 0                # no head of an answer yet
    PHASE_WHOLE = 1                  # one JSON message comes
    PHASE_STREAM = 2                 # events come and go on
    PHASE_HANDED_OVER = 3            # Python has it
    PHASE_OVER = 4

cdef class DirectCall(ClientCall):
    cdef DirectBackend backend
    cdef RoutedRequest exchange
    cdef Message message
    cdef object session
    cdef int phase
    cdef readonly Reply refusal      # with which a policy in front of the target answered
    cdef object successor            # link.handler.HandlerCall that has taken over
    cdef RequestTelemetry telemetry
    cdef bytes last                  # of what the client got, for the telemetry
    cdef int status
    cdef bint timed_out
    cdef DirectTimer timer
    cdef int64_t deadline
    cdef SseDecoder decoder
    cdef list answers                # data of the last events that may be the response

    cdef int launch(self) except -1
    cdef int _make_head(self) except -1
    cdef bint _run_steps(self) except -1
    cdef int _hand_over(self) except -1
    cdef int _classify(self) except -1
    cdef int _disarm(self) except -1
    cdef int _told(self) except -1
    cdef int _tell(self, int status, bytes last) except -1
    cdef int _leave(self) except -1
    cdef int _answer_whole(self) except -1
    cdef int _begin_stream(self) except -1
    cdef int _stream(self, const char* p, Py_ssize_t n) except -1
    cdef int _end_stream(self) except -1
    cdef int _stream_lost(self, str detail) except -1
    cdef int _finish_stream(self, str reason) except -1
    cdef int _send(self, bytes data) except -1
    cdef int _broke(self, error) except -1
    cdef bytes _event(self)
