"""Backends whose endpoints a service picks for each request; see picked.pxd."""

from headgate_engine.context.headers cimport HEAD_CONNECT
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.backend cimport FORWARD, REPLY, PoolBackend, RoutedRequest
from headgate_engine.link.core cimport RequestCore
from headgate_engine.link.dynamic cimport Destinations
from headgate_engine.link.endpoints cimport EndpointSet, EndpointState
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.reasons cimport REPLY_NO_HEALTHY_BACKENDS
from headgate_engine.link.retries cimport may_repeat
from headgate_engine.plan.plans cimport BackendPlan
from headgate_engine.plan.retry cimport RetryPlan
from headgate_engine.plan.step cimport CONTINUE

from headgate_engine.errors import DestinationRefusedError

# In RequestContext.dynamic, under a name that no variable has.
cdef str PICKED = "picked endpoints"
cdef enum:
    MOST_PLACES = 16


def note_picked(RequestContext ctx not None, list places not None):
    """Note the endpoints for a request."""
    cdef RequestCore request = <RequestCore?>ctx.exchange
    cdef RetryPlan plan
    places = places[:MOST_PLACES]
    if ctx.dynamic is None:
        ctx.dynamic = {}
    ctx.dynamic[PICKED] = places
    if len(places) > 1 and request.retries is None:
        plan = RetryPlan(len(places) - 1)
        if may_repeat(plan, ctx):
            request.plan_retries(plan)


def picked_places(RequestContext ctx not None):
    """Return the endpoints that were noted for a request."""
    return None if ctx.dynamic is None else ctx.dynamic.get(PICKED)


cdef class PickedBackend(PoolBackend):
    def __init__(self, Destinations places=None):
        self.places = places

    cdef int dispatch(self, RoutedRequest request) except -1:
        cdef RequestContext ctx = request.ctx
        cdef BackendPlan plan = request.backend
        cdef object picked = None if ctx.dynamic is None else ctx.dynamic.get(PICKED)
        cdef Py_ssize_t first, index
        cdef Py_ssize_t count = 0 if picked is None else len(picked)
        if count == 0 or ctx.head.flags & HEAD_CONNECT:
            return PoolBackend.dispatch(self, request)
        if plan.authority is not None and not request.route.keep_authority:
            ctx.head.set_authority(plan.authority, len(plan.authority))
        first = 0 if request.retries is None else request.retries.made
        for index in range(count):
            if self.forward_to_place(request, picked[(first + index) % count]):
                break
        else:
            ctx.error = "no endpoint that was picked is known"
            ctx.reply = request.worker.reply(REPLY_NO_HEALTHY_BACKENDS)
            return REPLY
        # Signatures are made of the request as it leaves.
        if plan.final_steps and request.run_final_steps(plan.final_steps) != CONTINUE:
            return REPLY
        return FORWARD

    cdef bint forward_to_place(self, RoutedRequest request, bytes place) except -1:
        cdef BackendPlan plan = request.backend
        cdef EndpointState endpoint
        if plan.endpoints is not None:
            for endpoint in (<EndpointSet>plan.endpoints).endpoints:
                if endpoint.address == place:
                    request.forward_to(<Pool>endpoint.pool, endpoint)
                    return True
        elif plan.pool is not None and (<Pool>plan.pool).endpoint == place:
            request.forward_to(<Pool>plan.pool, None)
            return True
        if self.places is None:
            return False
        try:
            request.forward_to(self.places.find(place), None)
        except (DestinationRefusedError, OSError, ValueError) as error:
            request.ctx.add_log_field("inference.refused", str(error))
            return False
        return True
