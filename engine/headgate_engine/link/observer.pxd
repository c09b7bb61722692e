# Who watches a request on its way (link/traced); a request that nobody watches has none. Hooks do not raise and change
# nothing of the request but the streams that watch_client() and watch_upstream() wrap.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.backend cimport Backend, RoutedRequest
from headgate_engine.link.contract cimport ClientStream, ServerStream
from headgate_engine.plan.plans cimport ListenerPlan, RouteGroup

cdef class RequestObserver:
    cdef ServerStream watch_client(self, ServerStream client)
    cdef ClientStream watch_upstream(self, ClientStream stream)
    # -- the request ---------------------------------------------------------------------------------------------------
    cdef int started(self) except -1
    cdef int listener_chosen(self, ListenerPlan listener) except -1
    cdef int route_chosen(self, RoutedRequest request, ListenerPlan listener) except -1
    # The route that has the request hands it on to a group, where it has another route now (`matched`) or none; without a
    # group: it has chosen one of its backends.
    cdef int delegated(self, RoutedRequest request, RouteGroup group, bint matched) except -1
    cdef int backend_chosen(self, RoutedRequest request) except -1
    cdef int endpoint_chosen(self, bytes address) except -1              # None: none may be used
    # Runs steps of a phase (link.core.Phase) in the request's place; their verdict. A step that raises is passed on.
    cdef int run_steps(self, RoutedRequest request, tuple steps, int phase) except -1
    cdef int resumed(self, RoutedRequest request, int verdict) except -1
    cdef int failed(self, RoutedRequest request, str detail) except -1   # what it waited for, or a backend's own work
    # -- the backend ---------------------------------------------------------------------------------------------------
    # dispatch(), in the name of the request.
    cdef int dispatch(self, RoutedRequest request, Backend backend) except -1
    cdef int attempt_started(self, RoutedRequest request, str target, bytes body) except -1
    # The backend answers by itself: no connection of a pool is taken for the request as it is.
    cdef int own_attempt_started(self, RoutedRequest request, bytes body) except -1
    cdef int attempt_ended(self, RoutedRequest request, int status, str detail) except -1    # status 0: it failed: `detail`
    cdef int connecting_again(self) except -1
    cdef int retrying(self, RoutedRequest request, int number) except -1
    # -- the response --------------------------------------------------------------------------------------------------
    cdef int response_head(self, RoutedRequest request, MessageHead head) except -1
    # The backend's response has ended; None: without trailers.
    cdef int trailers_came(self, RoutedRequest request, MessageHead trailers) except -1
    cdef int head_kept(self, RoutedRequest request, Backend backend) except -1
    cdef int raw_data(self, const char* p, Py_ssize_t n) except -1       # of a response that a tap rewrites
    cdef int raw_end(self) except -1
    cdef int response_broke(self, str detail) except -1
    cdef int response_ready(self) except -1                              # before the response steps
    cdef int run_response_steps(self, RoutedRequest request, tuple steps, str level) except -1
    cdef int response_changed(self, RoutedRequest request) except -1     # behind them
    cdef int answered(self, RoutedRequest request, int status) except -1   # by a backend that has TAKEN the request
    # -- the end -------------------------------------------------------------------------------------------------------
    cdef int ending(self, RoutedRequest request) except -1
    cdef int ended(self) except -1                                       # logs and metrics are written
