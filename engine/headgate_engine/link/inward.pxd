# Calls to another port of this process: what one request sends upstream becomes another request there, with its own listener,
# policies and log line. No socket and no parser lie between them: heads are copied, bodies go on as they come.
#
# Both sides call each other. While one is in the middle of a call into the other, what the other has to say waits, and is told
# from the loop: nobody is called back in the middle of sending.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.backend cimport PoolBackend
from headgate_engine.link.contract cimport (
    ClientConnection, ClientStream, RequestSink, ResponseSink, ServerStream, UpstreamProtocol)
from headgate_engine.link.worker cimport Worker

cdef class InwardProtocol(UpstreamProtocol):
    cdef Worker worker

cdef class InwardConnection(ClientConnection):
    # The way to a port. It carries any number of calls.
    cdef Worker worker
    cdef str key                     # of the port: of a slot of the worker
    cdef bint closed
    cdef int left(self) except -1    # a call is over

cdef class InwardCall(ClientStream):
    # The calling side.
    cdef InwardConnection connection  # None: the call is over
    cdef ResponseSink sink           # the caller; None: it has let go
    cdef RequestSink request         # who answers; None: not begun, or it has let go
    cdef InwardAnswer answer
    cdef MessageHead head            # of the request, until it begins
    cdef list up, down               # (event, value) that wait for the caller and for who answers
    cdef Py_ssize_t held             # bytes of the request body that wait
    cdef int calling, answering      # calls of either side that are under way
    cdef bint begun                  # the request has started at the port
    cdef bint scheduled              # what waits is told in the next turn of the loop
    cdef bint request_paused, answer_paused
    cdef bint owed                   # the caller waits for on_upstream_writable()
    cdef bint head_seen, tunnel
    cdef int later(self) except -1
    cdef int tell_caller(self, int event, object value) except -1
    cdef int tell_answerer(self, int event, object value) except -1
    cdef int do_caller(self, int event, object value) except -1
    cdef int do_answerer(self, int event, object value) except -1
    cdef int start(self) except -1
    cdef int run_down(self) except -1
    cdef int over(self) except -1
    cdef int _told(self, int event, object value) except -1

cdef class InwardAnswer(ServerStream):
    # The answering side.
    cdef InwardCall call
    cdef int _tell(self, int event, object value) except -1

cdef class InwardBackend(PoolBackend):
    # Hands requests on, unless they were handed on too often already.
    pass
