"""The phases of a request between its head and its backend; see phases.pxd."""

from headgate_engine.context.cookies cimport take_session_cookies
from headgate_engine.context.headers cimport HEAD_CONNECT, HEAD_KEEPS_CASE, HEAD_SEVERAL_READINGS, MessageHead, drop_underscores
from headgate_engine.context.paths cimport PathGuise, guise_of, other_readings, settle_path
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.link.backend cimport FORWARD, REPLY, RUN_STEPS, Backend
from headgate_engine.link.core cimport (
    PHASE_BACKEND, PHASE_BACKEND_STEPS, PHASE_GATEWAY_STEPS, PHASE_LISTENER, PHASE_ROUTE, PHASE_ROUTE_STEPS, RequestCore)
from headgate_engine.link.forwarded cimport add_forwarded
from headgate_engine.link.intake cimport await_body, await_whole_body
from headgate_engine.link.reasons cimport (
    REPLY_DOUBTFUL_PATH, REPLY_INTERNAL, REPLY_INVALID_BACKEND, REPLY_LISTENER_NOT_FOUND, REPLY_MISDIRECTED,
    REPLY_NO_VALID_BACKENDS, REPLY_ROUTE_NOT_FOUND)
from headgate_engine.link.retries cimport may_repeat
from headgate_engine.link.spanned cimport begin_trace
from headgate_engine.link.states cimport E_COLLECT, E_SUSPEND, S_RUNNING
from headgate_engine.plan.plans cimport BackendPlan, BindPlan, Delegation, ListenerPlan, RouteGroup, RoutePlan
from headgate_engine.plan.step cimport CONTINUE, RESPOND, SUSPEND, WAIT_BODY, Step
from headgate_engine.route.table cimport HostTable, RouteRule, RouteTable

import logging

from headgate_engine.context.request import log_extra

logger = logging.getLogger("headgate.forward")


cdef int advance(RequestCore request) except -1:
    """Goes on from phase to phase until one has to wait or the request is answered."""
    cdef RequestCore held = request    # a step may have ended it
    cdef int verdict = CONTINUE
    cdef int phase
    while held.state == S_RUNNING:
        phase = request.phase          # a local one: the comparisons become a switch
        if phase == PHASE_LISTENER:
            verdict = pick_listener(request)
        elif phase == PHASE_GATEWAY_STEPS:
            verdict = phase_steps(request, request.listener.request_steps)
        elif phase == PHASE_ROUTE:
            verdict = pick_route(request)
        elif phase == PHASE_ROUTE_STEPS:
            verdict = phase_steps(request, request.route.request_steps)
            if verdict == CONTINUE and request.route.retry is not None and may_repeat(request.route.retry, request.ctx):
                request.plan_retries(request.route.retry)
        elif phase == PHASE_BACKEND:
            verdict = pick_backend(request)
        elif phase == PHASE_BACKEND_STEPS:
            verdict = phase_steps(request, request.backend.request_steps)
        else:
            return dispatch(request)
        if verdict == WAIT_BODY:
            if await_body(request):
                continue
            return 0
        if verdict == SUSPEND:
            request.move(E_SUSPEND)       # reading goes on: a client that leaves is seen; a body is collected
            return 0
        if verdict == RESPOND:
            return request.respond(request.ctx.reply)
        request.phase += 1
    return 0


cdef inline int phase_steps(RequestCore request, tuple steps) except -1:
    """Most phases have no steps."""
    return CONTINUE if not steps and request.observer is None else guarded_steps(request, steps)


cdef int dispatch(RequestCore request) except -1:
    cdef Backend destination = request.destination
    if request.rerouted:
        return dispatched(request, destination.proceed(request))
    if request.client_ended and not destination.serves_half_closed:
        return request.client.abort()         # the same as after it is dispatched (Exchange.on_client_eof)
    destination.prepare(request)
    if request.bind.forwarded and request.ctx.hops == 0:      # who handed it on within this process has added them
        add_forwarded(request.ctx, request.bind)
    if destination.wants_body and destination.reads_body(request):
        request.move(E_COLLECT)
        return await_whole_body(request)
    return dispatched(request, destination.dispatch(request))


cdef int dispatched(RequestCore request, int choice) except -1:
    """Does what the backend has chosen (link.backend.Dispatch)."""
    if choice == FORWARD:
        return request.connect()
    if choice == RUN_STEPS:
        request.rerouted = True
        request.phase = PHASE_BACKEND_STEPS
        return advance(request)
    return request.respond(request.ctx.reply) if choice == REPLY else 0


# -- listener, route, backend: CONTINUE, or RESPOND with ctx.reply where there is none -----------------------------------
cdef int pick_listener(RequestCore request) except -1:
    cdef MessageHead head = request.ctx.head
    cdef BindPlan bind = request.bind
    cdef ListenerPlan listener = bind.sole_listener
    take_session_cookies(request.ctx)
    if listener is None and bind.secure:
        # The certificate that the client was shown is of this one; pick_route() compares it with the host.
        listener = request.ctx.connection.named_listener(bind)
    if listener is None:
        listener = <ListenerPlan>(<HostTable>bind.listeners).find(
            head.data + head.authority_off, head.authority_len)
    if not bind.keeps_underscores:
        drop_underscores(head)
    if not bind.lower_case:
        head.flags |= HEAD_KEEPS_CASE
    if not settle_path(head, bind.path_mode):
        request.ctx.reply = request.worker.reply(REPLY_DOUBTFUL_PATH)
        return RESPOND
    if request.observer is not None:
        request.observer.listener_chosen(listener)
    request.listener = listener
    request.ctx.listener = listener
    if bind.tracing is not None:
        begin_trace(request)
    if listener is None:
        request.ctx.reply = request.worker.reply(REPLY_LISTENER_NOT_FOUND)
        return RESPOND
    return CONTINUE


cdef int pick_route(RequestCore request) except -1:
    cdef MessageHead head = request.ctx.head
    cdef RouteRule rule = None
    cdef RoutePlan route
    cdef int missing = REPLY_ROUTE_NOT_FOUND
    if request.bind.secure and request.bind.sole_listener is None:
        meant = (<HostTable>request.bind.listeners).find(head.data + head.authority_off, head.authority_len)
        if meant is not request.listener:
            missing = REPLY_LISTENER_NOT_FOUND if meant is None else REPLY_MISDIRECTED
    if missing == REPLY_ROUTE_NOT_FOUND:
        rule = (<RouteTable>request.listener.routes).match_rule(head.data + head.authority_off, head.authority_len, head)
    if rule is not None and head.flags & HEAD_SEVERAL_READINGS and not one_meaning(
            request, <RouteTable>request.listener.routes, rule):
        request.ctx.reply = request.worker.reply(REPLY_DOUBTFUL_PATH)
        return RESPOND
    if rule is not None:
        route = <RoutePlan>rule.target
        take_route(request, rule)
    if request.observer is not None:
        request.observer.route_chosen(request, request.listener)
    if rule is None:
        request.ctx.reply = request.worker.reply(missing)
        return RESPOND
    if route.delegates and delegate(request, rule) == RESPOND:
        return RESPOND
    route = request.route
    if request.ctx.key_use is not None:          # of a policy in front of the route
        request.ctx.reply = request.ctx.key_use.kept_out(request.ctx)
        if request.ctx.reply is not None:
            return RESPOND
    if route.request_timeout_ns:
        request.limits().whole = request.ctx.started_ns + route.request_timeout_ns
        request.arm()
    return CONTINUE


cdef inline int take_route(RequestCore request, RouteRule rule) except -1:
    request.route = request.ctx.route = <RoutePlan>rule.target
    request.ctx.rule = rule
    return 0


cdef int delegate(RequestCore request, RouteRule rule) except -1:
    """Goes on from a route that hands requests on to groups of routes, until one of them has the request.

    What the route chooses by weight beside its groups is kept: pick_backend() does not choose again.
    """
    cdef MessageHead head = request.ctx.head
    cdef Delegation found = Delegation.__new__(Delegation)
    cdef RoutePlan route = <RoutePlan>rule.target
    cdef BackendPlan entry
    cdef RouteGroup group
    found.rules = []
    request.ctx.delegation = found
    while route.delegates:
        entry = route.choose()
        if entry is None or entry.group is None:
            found.entry = entry
            if request.observer is not None:
                request.observer.delegated(request, None, False)
            break
        group = entry.group
        found.rules.append(rule)
        rule = None if group.routes is None else (<RouteTable?>group.routes).match_rule(
            head.data + head.authority_off, head.authority_len, head)
        if rule is not None and head.flags & HEAD_SEVERAL_READINGS and not one_meaning(
                request, <RouteTable>group.routes, rule):
            request.ctx.reply = request.worker.reply(REPLY_DOUBTFUL_PATH)
            return RESPOND
        if rule is not None:
            take_route(request, rule)
        if request.observer is not None:
            request.observer.delegated(request, group, rule is not None)
        if rule is None:
            missing = f"there is no route group {group.name!r}, or it is empty" if group.routes is None else (
                f"no route of the group {group.name!r} matches")
            request.ctx.error = f"route not found: {missing}"
            request.ctx.reply = request.worker.reply(REPLY_ROUTE_NOT_FOUND)
            return RESPOND
        route = <RoutePlan>rule.target
    if found.rules:
        request.ctx.add_log_field("route.parents", ",".join(found.names()))
    return CONTINUE


cdef bint is_protected(RoutePlan route) except -1:
    """Whether a policy asks who may use the route, or one of those that it delegates to."""
    cdef BackendPlan entry
    if not route.protected and route.delegates:
        for entry in route.backends:
            if entry.group is not None and entry.group.protected:
                return True
    return route.protected


cdef bint one_meaning(RequestCore request, RouteTable table, RouteRule rule) except -1:
    """Whether all readings of the path stay below the prefix of the rule, and reach no other route of its table that is
    protected."""
    cdef MessageHead head = request.ctx.head
    cdef PathGuise guise = guise_of(head)
    cdef RouteRule other
    cdef bint found = True
    try:
        for path in other_readings(head):
            guise.wear(<bytes>path)
            if not rule.covers(head):
                found = False
                break
            other = table.match_rule(head.data + head.authority_off, head.authority_len, head)
            if other is not None and other.target is not rule.target and is_protected(<RoutePlan>other.target):
                found = False
                break
    finally:
        guise.drop()
    return found


cdef int pick_backend(RequestCore request) except -1:
    cdef RequestContext ctx = request.ctx
    cdef BackendPlan plan = None if request.retries is None else request.retries.entry
    cdef Reply failure
    if plan is None:
        if ctx.delegation is not None:
            plan = (<Delegation>ctx.delegation).entry
        if plan is None:
            plan = request.route.choose()
        if request.retries is not None:
            request.retries.entry = plan
    request.backend = plan
    if plan is None:
        ctx.reply = request.worker.reply(REPLY_NO_VALID_BACKENDS)
        return RESPOND
    ctx.backend = plan
    ctx.protocol = plan.protocol
    request.destination = <Backend>plan.destination
    failure = request.destination.failure
    if failure is None and ctx.head.flags & HEAD_CONNECT and plan.tcp_pool is None and plan.endpoints is None and (
            not request.destination.opens_tunnels):
        failure = request.worker.reply(REPLY_INVALID_BACKEND)
    if request.observer is not None:
        request.observer.backend_chosen(request)
    if failure is None:
        return CONTINUE
    ctx.reply = failure
    return RESPOND


# -- steps ---------------------------------------------------------------------------------------------------------------
cdef int guarded_steps(RequestCore request, tuple steps) except -1:
    """Handles a step that raises: answers 500, logs the error, and sends nothing upstream."""
    try:
        if request.observer is not None:
            return request.observer.run_steps(request, steps, request.phase)
        return run_steps(request.ctx, steps)
    except Exception as error:  # task boundary
        logger.exception("a step failed", extra=log_extra(request.ctx))
        request.ctx.error = f"step failed: {type(error).__name__}"
        request.ctx.reply = request.worker.reply(REPLY_INTERNAL)
        return RESPOND


cdef int run_steps(RequestContext ctx, tuple steps) except -1:
    cdef int verdict
    cdef int count = len(steps)
    while ctx.next_step < count:
        verdict = (<Step>steps[ctx.next_step]).run(ctx)
        if verdict == WAIT_BODY:
            return verdict            # the same step runs again when the body is there
        ctx.next_step += 1
        if verdict != CONTINUE:
            return verdict
    ctx.next_step = 0
    return CONTINUE
