"""Steps that ask a service by a unary gRPC call. No task and no future stands between the answer and the request."""

import logging

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.link.grpc_call cimport GrpcCaller, UnaryListener
from headgate_engine.plan.step cimport CONTINUE, RESPOND, SUSPEND, WAIT_BODY
from headgate_engine.steps.asking cimport AskingStep

from libc.stdint cimport int64_t

from headgate_engine.context.request import log_extra

logger = logging.getLogger("headgate.step")

cdef enum:
    NONE_YET = -1


cdef class GrpcQuestion:
    def __init__(self, str path not None, tuple callers not None, order not None, policy not None, *,
                 double timeout_s, Py_ssize_t limit):
        if not callers:
            raise ValueError("there is no endpoint")
        for one in callers:
            if not isinstance(one, GrpcCaller):
                raise TypeError("callers are wanted")
        self.path, self.callers, self.order = path, callers, order
        self.compose, self.conclude = policy.compose, policy.conclude
        self.timeout_s, self.limit = timeout_s, limit


cdef class ConsultStep(AskingStep):
    def __init__(self, str name not None, function not None, GrpcQuestion question not None, int64_t body_bytes=-1):
        AskingStep.__init__(self, name, function, body_bytes)
        self.question = question

    cdef int run(self, RequestContext ctx) except -1:
        cdef Consultation found
        cdef GrpcQuestion question = self.question
        if self.body_bytes > 0 and self.body_missing(ctx):
            ctx.body_limit = self.body_bytes
            return WAIT_BODY
        composed = question.compose(ctx)
        if composed is None:
            return CONTINUE
        if type(composed) is not tuple:
            ctx.reply = <Reply?>composed
            return RESPOND
        found = Consultation.__new__(Consultation)
        found.question, found.ctx, found.exchange, found.name = question, ctx, ctx.exchange, self.name
        found.message, found.note = <tuple>composed
        found.verdict = NONE_YET
        if len(question.callers) == 1:
            found.ask(0)
        else:
            found.places = question.order()
            found.ask(next(found.places))
        if found.failure is not None:
            raise found.failure
        if found.verdict != NONE_YET:
            return found.verdict
        found.suspended = True
        ctx.waiting = found
        return SUSPEND


cdef class Consultation(UnaryListener):
    cdef int ask(self, Py_ssize_t place) except -1:
        cdef GrpcQuestion question = self.question
        cdef GrpcCaller caller = <GrpcCaller?>question.callers[place]
        call = caller.begin(question.path, self.message, (), question.timeout_s, question.limit, self)
        if self.ctx is not None and self.verdict == NONE_YET and not call.ended:
            self.call = call
        return 0

    def cancel(self):
        """The request is over, or does not wait any more: the call is given up."""
        call, self.call = self.call, None
        self.ctx = self.exchange = None
        if call is not None:
            call.abandon()

    cdef int settled(self, bytes message, object failure) except -1:
        self.call = None
        if self.ctx is None:
            return 0
        if failure is not None and failure.unsent and self.places is not None:
            place = next(self.places, None)
            if place is not None:
                return self.ask(place)
        return self.conclude(message, failure)

    cdef int conclude(self, bytes message, object failure) except -1:
        """Apply the answer to the request, which continues if it was suspended."""
        cdef RequestContext ctx = self.ctx
        cdef object exchange = self.exchange
        self.ctx = self.exchange = None
        try:
            reply = self.question.conclude(ctx, message, failure, self.note)
            if reply is not None:
                ctx.reply = <Reply?>reply
        except Exception as error:  # task boundary: a 500 for this request
            if not self.suspended:
                self.failure = error         # the step raises it: here, a pool would get it
                return 0
            logger.exception("%s failed", self.name, extra=log_extra(ctx))
            if ctx.exchange is exchange:
                ctx.waiting = None
                exchange.task_failed(f"step {self.name}: {type(error).__name__}")
            return 0
        self.verdict = CONTINUE if reply is None else RESPOND
        if self.suspended and ctx.exchange is exchange:
            ctx.waiting = None
            exchange.resume(self.verdict)
        return 0
