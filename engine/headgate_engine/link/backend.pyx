"""What answers a request; see backend.pxd."""

from headgate_engine.context.headers cimport HEAD_CONNECT
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.link.contract cimport RequestSink
from headgate_engine.link.endpoints cimport EndpointState
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.reasons cimport REPLY_NO_HEALTHY_BACKENDS
from headgate_engine.plan.plans cimport Destination
from headgate_engine.plan.retry cimport RetryPlan
from headgate_engine.plan.step cimport CONTINUE


cdef class RoutedRequest(RequestSink):
    cdef int forward_to(self, Pool pool, EndpointState endpoint) except -1:
        raise NotImplementedError("RoutedRequest.forward_to")

    cdef bint pick_endpoint(self) except -1:
        raise NotImplementedError("RoutedRequest.pick_endpoint")

    cdef int plan_retries(self, RetryPlan plan) except -1:
        raise NotImplementedError("RoutedRequest.plan_retries")

    cdef int run_final_steps(self, tuple steps) except -1:
        raise NotImplementedError("RoutedRequest.run_final_steps")

    cdef int start_own_attempt(self) except -1:
        raise NotImplementedError("RoutedRequest.start_own_attempt")

    cdef int respond(self, Reply reply) except -1:
        raise NotImplementedError("RoutedRequest.respond")

    cdef int answer_whole(self, int status, object headers, bytes body, str reason) except -1:
        raise NotImplementedError("RoutedRequest.answer_whole")

    cdef int answer_start(self, int status, object headers) except -1:
        raise NotImplementedError("RoutedRequest.answer_start")

    cdef int answer_send(self, bytes data) except -1:
        raise NotImplementedError("RoutedRequest.answer_send")

    cdef int answer_end(self) except -1:
        raise NotImplementedError("RoutedRequest.answer_end")

    cdef int answer_failed(self, str detail) except -1:
        raise NotImplementedError("RoutedRequest.answer_failed")

    cdef bint congested(self) noexcept:
        return False


cdef class Backend(Destination):
    cdef int prepare(self, RoutedRequest request) except -1:
        return 0

    cdef bint reads_body(self, RoutedRequest request) except -1:
        return True

    cdef Pool pool_of_name(self, str name, int port):
        raise ValueError("it carries no connections")

    cdef int dispatch(self, RoutedRequest request) except -1:
        raise NotImplementedError("Backend.dispatch")

    cdef int proceed(self, RoutedRequest request) except -1:
        raise NotImplementedError("Backend.proceed")

    cdef int answered(self, RoutedRequest request, int status) except -1:
        return 0

    cdef int attempt_failed(self, RoutedRequest request, str outcome) except -1:
        return 0

    cdef int attempt_ended(self, RoutedRequest request) except -1:
        return 0

    cdef int stream_awaited(self, RoutedRequest request, object media_type) except -1:
        return 0

    cdef int upgraded(self, RoutedRequest request) except -1:
        return 0

    cdef int client_writable(self, RoutedRequest request) except -1:
        request.call.client_writable()
        return 0

    cdef int client_gone(self, RoutedRequest request) except -1:
        request.call.client_gone()
        return 0

    cdef int timed_out(self, RoutedRequest request) except -1:
        request.call.client_gone()      # nobody waits for its answer any more
        return 0

    cdef Reply own_answer(self, RequestContext ctx, Reply reply):
        return reply

    cdef int ended(self, RoutedRequest request) except -1:
        return 0


cdef class PoolBackend(Backend):
    def __cinit__(self):
        self.serves_half_closed = True

    cdef int dispatch(self, RoutedRequest request) except -1:
        cdef BackendPlan plan = request.backend
        if plan.authority is not None and not request.ctx.head.flags & HEAD_CONNECT and not request.route.keep_authority:
            request.ctx.head.set_authority(plan.authority, len(plan.authority))
        if plan.endpoints is None:
            request.forward_to(<Pool>(plan.tcp_pool if request.ctx.head.flags & HEAD_CONNECT else plan.pool), None)
        elif not request.pick_endpoint():
            request.ctx.reply = request.worker.reply(REPLY_NO_HEALTHY_BACKENDS)
            return REPLY
        # Signatures are made of the request as it leaves.
        if plan.final_steps and request.run_final_steps(plan.final_steps) != CONTINUE:
            return REPLY
        return FORWARD


cdef class InvalidBackend(Backend):
    def __init__(self, Reply failure not None):
        self.failure = failure


# It keeps nothing of its own: one serves all plans.
HOST = PoolBackend()
