"""Requests for models, as a backend; see backend.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport H_CONTENT_ENCODING, HEAD_UPGRADE, MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.link.backend cimport FORWARD, REPLY, RUN_STEPS, TAKEN, Backend, RoutedRequest
from headgate_engine.link.attempt cimport UpstreamAttempt
from headgate_engine.link.exchange cimport Exchange
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.reasons cimport REPLY_INTERNAL
from headgate_engine.llm.array_tap cimport array_tap
from headgate_engine.llm.attempt cimport end_attempt, end_call, LlmCall
from headgate_engine.llm.fan cimport FanPool, fan_pool
from headgate_engine.llm.guarded cimport guard_tap
from headgate_engine.llm.id_tap cimport id_tap
from headgate_engine.llm.metered cimport metered_tap
from headgate_engine.llm.realtime cimport frame_tap
from headgate_engine.llm.router cimport LlmChoice, ModelRouter, render
from headgate_engine.llm.public cimport PublicModel
from headgate_engine.llm.target cimport FormatRoute, LlmGroup, LlmTarget, ModelEntry, VirtualEntry
from headgate_engine.plan.retry cimport RetryPlan
from headgate_engine.plan.step cimport CONTINUE
from headgate_engine.steps.local_rate_limit cimport settle_tokens
from headgate_engine.steps.remote_limit cimport settle_remote
from headgate_engine.steps.virtual_key cimport KeyUse

import asyncio
import logging

from headgate_engine.context.request import log_extra
from headgate_engine.llm.capture_tap import COUNTING
from headgate_engine.llm.resources import LOOSE
from headgate_engine.llm.router import BODY_TOO_LONG

logger = logging.getLogger("headgate.forward")


cdef class ListCall:
    """A request for a list that waits for providers."""

    cdef bint gone
    cdef object task

    def client_gone(self):
        self.gone = True
        if self.task is not None:
            self.task.cancel()

    def client_writable(self):
        """There is nothing to go on with."""


cdef bint asks_request(ModelRouter router) except -1:
    """Whether an expression may ask what a request says before its provider's own steps."""
    cdef list entries = [] if router.sole_entry is None else [router.sole_entry]
    for model in router.models:
        if (<PublicModel>model).reads_body:
            return True
        entries.append((<PublicModel>model).entry)
    for one in router.virtual.values():
        if (<VirtualEntry>one).conditions is not None:
            return True
        entries += [found for found in (<VirtualEntry>one).entries if isinstance(found, ModelEntry)]
    for entry in entries:
        if (<ModelEntry>entry).affinity_reads or (<ModelEntry>entry).guarded:
            return True
        for group in (<ModelEntry>entry).groups:
            for target in (<LlmGroup>group).targets:
                if (<LlmTarget>target).edits is not None and (<LlmTarget>target).edits.transformations:
                    return True
    return False


cdef bytes request_path(RequestContext ctx):
    cdef MessageHead head = ctx.head
    return head.data[head.target_off:head.target_off + head.path_len]


def counted_format(ModelRouter router not None, RequestContext ctx not None):
    """The format of a request that asks only for a count of tokens, None for others."""
    cdef bytes path = request_path(ctx)
    cdef str named = router.routes.named(path, len(path))
    return named if named in COUNTING else None


cdef class LlmBackend(Backend):
    """Sends requests to the providers of the models of `router`."""

    def __init__(self, ModelRouter router not None, speak=None):
        self.router = router
        self.speak = speak
        self.reads_request = asks_request(router)
        self.wants_body = True
        self.too_long = BODY_TOO_LONG

    cdef int prepare(self, RoutedRequest request) except -1:
        """Without a retry policy of the route, other providers of the model are tried anyway."""
        cdef RetryPlan plan = self.router.failover
        if request.retries is None and plan is not None and not request.ctx.attempts and (
                not request.ctx.head.flags & HEAD_UPGRADE):
            request.plan_retries(plan)
        return 0

    cdef bint reads_body(self, RoutedRequest request) except -1:
        return not self.router.passes_unread(request.ctx, request.backend.max_body)

    cdef int dispatch(self, RoutedRequest request) except -1:
        cdef RequestContext ctx = request.ctx
        if ctx.trace is not None:
            ctx.trace.llm_body(ctx.body)
        if self.reading is not None and ctx.llm is None and ctx.body is not None and self._is_long(ctx):
            request.backend = self.reading
            return RUN_STEPS
        return self._choose(request)

    cdef bint _is_long(self, RequestContext ctx) except -1:
        """Whether the body takes long to read, and it will be read."""
        if len(ctx.body) > self.coded_bytes and ctx.head.find_id(H_CONTENT_ENCODING, 0) >= 0:
            return True
        if 0 < self.peek_bytes < len(ctx.body):
            return True
        return len(ctx.body) > self.long_bytes and (
            self.reads_request or counted_format(self.router, ctx) is not None)

    cdef int _choose(self, RoutedRequest request) except -1:
        """Finds the provider, with the body read."""
        cdef RequestContext ctx = request.ctx
        cdef LlmChoice choice
        cdef bint first = ctx.llm is None
        choice = self.router.choose(ctx)
        if choice.reply is not None:
            if choice.waits is not None:
                return self._ask(request, choice.waits)
            ctx.reply = choice.reply
            return REPLY
        if first and request.retries is not None and request.retries.plan is not request.route.retry:
            request.retries.left = min(request.retries.left, choice.spare)
        request.backend = choice.plan
        ctx.backend = choice.plan
        request.tap = choice.tap
        request.forward_to(<Pool>choice.pool, choice.endpoint)
        # The provider's own steps (guards, credentials) see the client's format; they may suspend.
        return RUN_STEPS

    cdef int _ask(self, RoutedRequest request, list sources) except -1:
        """Asks providers for the models that patterns stand for, and answers then."""
        cdef ListCall call = ListCall()
        request.start_own_attempt()
        request.call = call
        call.task = request.worker.spawn("models of providers", self._list(request, call, sources))
        return TAKEN

    async def _list(self, RoutedRequest request, ListCall call, list sources):
        cdef RequestContext ctx
        cdef Reply reply
        try:
            await asyncio.gather(*(source.refresh() for source in sources))
            ctx = request.ctx
            if call.gone or ctx is None:
                return
            reply = self.router._models(ctx, request_path(ctx))
            if reply.status >= 400:
                reply = self.own_answer(ctx, reply)
            request.answer_whole(reply.status, reply.headers, reply.body, reply.reason)
        except Exception as error:  # task boundary: a 500 for this request
            logger.exception("the models of providers cannot be listed", extra=log_extra(request.ctx))
            if not call.gone:
                request.answer_failed(f"models cannot be listed: {type(error).__name__}")
        finally:
            # The task holds the call.
            call.task = None

    cdef int proceed(self, RoutedRequest request) except -1:
        """After the steps of the provider: translates the request, signs it and sends it."""
        cdef RequestContext ctx = request.ctx
        cdef LlmCall call = <LlmCall>ctx.llm
        cdef FormatRoute route
        cdef Reply reply
        if call is None:
            return self._choose(request)         # a long body has been read
        try:
            reply = render(ctx)
            if call.translation_state is not None and (call.translation_state.choices > 1 or call.translation_state.others):
                self._fan_out(request, call)
            call.kept_back = (request.backend.first_words_ns != 0 and request.retries is not None
                              and request.retries.left > 0)
            request.tap = guard_tap(call, request.tap, (<LlmTarget>call.target).max_answer)
            if call.id_place is not None:
                route = <FormatRoute>call.format_route
                request.tap = id_tap(request.tap, self.router.resources.ids, call.id_place, route.prefix, route.strip)
            if ctx.key_use is not None and call.streaming:
                request.tap = metered_tap(request.tap, call.format, <KeyUse>ctx.key_use)
            if call.arrays and request.tap is not None:
                request.tap = array_tap(request.tap)
        except Exception as error:  # task boundary: a 500 for this request
            logger.exception("a request cannot be put into the provider's format", extra=log_extra(ctx))
            ctx.error = f"request cannot be rendered: {type(error).__name__}"
            reply = request.worker.reply(REPLY_INTERNAL)
        if reply is not None:
            ctx.reply = reply
            return REPLY
        if request.backend.final_steps and request.run_final_steps(request.backend.final_steps) != CONTINUE:
            return REPLY
        if ctx.trace is not None:
            ctx.trace.llm_chosen(call.attempt)
            ctx.trace.backend_chosen(request.backend, "subBackend")
        if call.attempt is not None:
            call.attempt.started_ns = monotonic_ns()
        return FORWARD

    cdef int _fan_out(self, RoutedRequest request, LlmCall call) except -1:
        """Has the provider asked for each part of the answer by itself."""
        cdef UpstreamAttempt attempt = (<Exchange?>request).attempt
        cdef FanPool fan = fan_pool(attempt.pool, request.ctx, call)
        attempt.pool = fan
        request.tap = fan.tap
        return 0

    cdef int answered(self, RoutedRequest request, int status) except -1:
        return 0 if request.ctx.llm is None else (<LlmCall>request.ctx.llm).answered(status)

    cdef int attempt_failed(self, RoutedRequest request, str outcome) except -1:
        return 0 if request.ctx.llm is None else (<LlmCall>request.ctx.llm).note(outcome)

    cdef int attempt_ended(self, RoutedRequest request) except -1:
        return 0 if request.ctx.llm is None else end_attempt(request.ctx)

    cdef int stream_awaited(self, RoutedRequest request, object media_type) except -1:
        cdef LlmCall call = <LlmCall>request.ctx.llm
        if request.ctx.trace is not None and (<FormatRoute>call.format_route).translation is not None:
            request.ctx.trace.stream_translated(call.attempt, media_type)
        return 0

    cdef int upgraded(self, RoutedRequest request) except -1:
        cdef RequestContext ctx = request.ctx
        cdef LlmCall call = <LlmCall>ctx.llm
        if call is not None:
            call.realtime_tap = request.tunnel.tap = frame_tap(ctx, call)
            guarded = None if call.guards is None else call.guards.tunnel
            if ctx.key_use is not None and call.format == "realtime" and (<KeyUse>ctx.key_use).converse is not None:
                request.tunnel.inspector = (<KeyUse>ctx.key_use).converse(request.tunnel, ctx, guarded)
            elif guarded is not None:
                request.tunnel.inspector = guarded(request.tunnel)
        return 0

    cdef Reply own_answer(self, RequestContext ctx, Reply reply):
        cdef LlmCall call = <LlmCall>ctx.llm
        if self.speak is None:
            return reply
        limit, remaining, reset = limit_told(ctx) if reply.status == 429 else (-1, -1, -1)
        try:
            format = self.router.format_of(ctx) if call is None or call.format in LOOSE else call.format
            return self.speak(format, reply, limit, remaining, reset, ctx.request_id)
        except Exception:  # task boundary: the answer as it is elsewhere
            logger.exception("an answer cannot be told in the client's format", extra=log_extra(ctx))
            return reply

    cdef int ended(self, RoutedRequest request) except -1:
        cdef RequestContext ctx = request.ctx
        if ctx.llm is not None:
            end_call(ctx)
            if ctx.token_buckets is not None:
                settle_tokens(ctx)        # before the client can ask again
            if ctx.remote_limits is not None:
                settle_remote(ctx)
            if ctx.key_use is not None:
                ctx.key_use.settle(ctx)
        return 0


cdef tuple limit_told(RequestContext ctx):
    """(limit, remaining, reset in seconds) of the rate limit that the response tells; -1 for what it does not."""
    cdef dict found = {}
    cdef bytes name, value
    for name, value in ctx.response_headers or ():
        if name.startswith(b"x-ratelimit-") and value.isdigit():
            found[name[12:]] = int(value)
    return found.get(b"limit", -1), found.get(b"remaining", -1), found.get(b"reset", -1)
