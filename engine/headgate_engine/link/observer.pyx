"""Observers of requests; see observer.pxd. Methods that an observer does not override do nothing."""

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.backend cimport Backend, RoutedRequest
from headgate_engine.link.contract cimport ClientStream, ServerStream
from headgate_engine.plan.plans cimport ListenerPlan, RouteGroup


cdef class RequestObserver:
    cdef ServerStream watch_client(self, ServerStream client):
        return client

    cdef ClientStream watch_upstream(self, ClientStream stream):
        return stream

    cdef int started(self) except -1:
        return 0

    cdef int listener_chosen(self, ListenerPlan listener) except -1:
        return 0

    cdef int route_chosen(self, RoutedRequest request, ListenerPlan listener) except -1:
        return 0

    cdef int delegated(self, RoutedRequest request, RouteGroup group, bint matched) except -1:
        return 0

    cdef int backend_chosen(self, RoutedRequest request) except -1:
        return 0

    cdef int endpoint_chosen(self, bytes address) except -1:
        return 0

    cdef int run_steps(self, RoutedRequest request, tuple steps, int phase) except -1:
        raise NotImplementedError("RequestObserver.run_steps")

    cdef int resumed(self, RoutedRequest request, int verdict) except -1:
        return 0

    cdef int failed(self, RoutedRequest request, str detail) except -1:
        return 0

    cdef int dispatch(self, RoutedRequest request, Backend backend) except -1:
        return backend.dispatch(request)

    cdef int attempt_started(self, RoutedRequest request, str target, bytes body) except -1:
        return 0

    cdef int own_attempt_started(self, RoutedRequest request, bytes body) except -1:
        return self.attempt_started(request, request.backend.name, body)

    cdef int attempt_ended(self, RoutedRequest request, int status, str detail) except -1:
        return 0

    cdef int connecting_again(self) except -1:
        return 0

    cdef int retrying(self, RoutedRequest request, int number) except -1:
        return 0

    cdef int response_head(self, RoutedRequest request, MessageHead head) except -1:
        return 0

    cdef int trailers_came(self, RoutedRequest request, MessageHead trailers) except -1:
        return 0

    cdef int head_kept(self, RoutedRequest request, Backend backend) except -1:
        return 0

    cdef int raw_data(self, const char* p, Py_ssize_t n) except -1:
        return 0

    cdef int raw_end(self) except -1:
        return 0

    cdef int response_broke(self, str detail) except -1:
        return 0

    cdef int response_ready(self) except -1:
        return 0

    cdef int run_response_steps(self, RoutedRequest request, tuple steps, str level) except -1:
        raise NotImplementedError("RequestObserver.run_response_steps")

    cdef int response_changed(self, RoutedRequest request) except -1:
        return 0

    cdef int answered(self, RoutedRequest request, int status) except -1:
        return 0

    cdef int ending(self, RoutedRequest request) except -1:
        return 0

    cdef int ended(self) except -1:
        return 0
