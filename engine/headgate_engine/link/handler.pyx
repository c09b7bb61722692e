"""Backends written in Python: they get whole requests and answer with a body or a stream of pieces.

One asyncio task per request runs the handler; it is cancelled when the client goes away. An exception that the handler
lets out becomes a 500 (or a broken connection, once the head has left) and a line in the log.
"""

import asyncio
import logging
import re

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.backend cimport TAKEN, Backend, RoutedRequest
from headgate_engine.link.core cimport RequestCore
from headgate_engine.link.worker cimport Worker

from headgate_engine.log.labels cimport place_labels

from headgate_engine.context.request import log_extra
from headgate_engine.log.labels import route_labels

# token of RFC 9110 section 5.6.2
NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)

logger = logging.getLogger("headgate.handler")

cdef enum:
    MAX_NAMES = 256


cdef class HandlerBackend(Backend):
    """Runs `async handle(call)` for each request. worker: whose spawn() owns the tasks."""

    def __init__(self, Worker worker, str name, handle):
        self.worker = worker
        self.name = name
        self.task_name = f"handler {name}"
        self.handle = handle
        self.wants_body = True

    def begin(self, RoutedRequest request not None, begun=None):
        """Starts the handler. `begun`: the call to a target that the engine has begun for this request."""
        call = HandlerCall(request, begun)
        call.task = self.worker.spawn(self.task_name, self._run(call))
        return call

    cdef int dispatch(self, RoutedRequest request) except -1:
        request.start_own_attempt()
        request.call = self.begin(request)
        return TAKEN

    async def _run(self, HandlerCall call):
        try:
            await self.handle(call)
        except asyncio.CancelledError:
            if not call.gone:
                call.fail("handler cancelled")
            raise
        except ConnectionResetError:
            call.fail("client closed the connection")
        except Exception as error:  # task boundary: the client gets a 500, the worker goes on
            logger.exception("handler failed", extra=log_extra(call.exchange.ctx, handler=self.name))
            call.fail(f"handler failed: {type(error).__name__}")
        else:
            if call.exchange.ctx is not None and not is_passing(<RequestCore>call.exchange):
                call.fail("handler did not finish its answer" if call.answered else "handler gave no answer")
        finally:
            # The task holds the call: together they would wait for the garbage collector, thousands in a second.
            call.task = None
            if call.begun is not None:
                call.begun.give_up()


cdef class HandlerCall:
    """The request that a handler gets. All but the answer is read once, at construction or at first access."""

    cdef RoutedRequest exchange
    cdef readonly str method, target, path, authority, peer
    cdef readonly bytes body
    cdef readonly object headers
    cdef readonly bint gone, answered
    cdef readonly bint secure            # the client reached the gateway over TLS
    cdef public object task
    # Where the handler wants to be told of its end: ended(status, last piece of the body), status 0 without an answer.
    cdef public object telemetry
    # The call to a target that the engine has begun for this request (mcp.direct.DirectCall); who takes it sets None.
    cdef public object begun
    cdef object writable
    cdef readonly object place           # equal for requests with equal route_labels(); None if they may all differ
    cdef int status
    cdef bytes last

    def __init__(self, RoutedRequest exchange not None, begun=None):
        cdef RequestContext ctx = exchange.ctx
        head = ctx.request
        self.begun = begun
        # For proxy.upstreamDuration: from here to the head of the answer all is waiting for targets, however many.
        if begun is None:
            ctx.upstream_started_ns = monotonic_ns()
        self.exchange = exchange
        self.method = head.method
        self.target = head.target
        self.path = head.path
        self.authority = head.authority
        self.body = ctx.request_body
        self.headers = HandlerHeaders(head.items())
        self.peer = ctx.peer
        self.secure = ctx.secure
        self.last = b""
        self.place = None if exchange.bind.metric_labels is not None else place_labels(ctx, exchange.bind)

    def route_labels(self):
        """The labels of its route and of the configuration, in the form of series keys; only while the request is in
        progress."""
        return route_labels(self.exchange.ctx, self.exchange.bind)

    @property
    def context(self):
        """The request's context; None once it is over."""
        return self.exchange.ctx

    def add_log_field(self, str key, value):
        if self.exchange.ctx is not None:
            self.exchange.ctx.add_log_field(key, value)

    def reply(self, int status, headers=(), bytes body=b"", str reason=None):
        """Answers with a whole body. `headers`: pairs of str. Does nothing if the client has gone."""
        self.answered = True
        if not self.gone:
            self.report(status, body)
            self.note_head()
            self.exchange.answer_whole(status, encode_headers(headers), body, reason)

    def stream(self, int status, headers=()):
        """Sends the head and returns the stream for the body. Raises ConnectionResetError if the client has gone."""
        if self.gone:
            raise ConnectionResetError("client closed the connection")
        self.answered = True
        self.status = status
        self.note_head()
        self.exchange.answer_start(status, encode_headers(headers))
        return HandlerStream(self)

    cdef int note_head(self) except -1:
        if self.exchange.ctx is not None:
            self.exchange.ctx.head_received_ns = monotonic_ns()
        return 0

    cdef int fail(self, str detail) except -1:
        self.answered = True
        self.report(500, self.last)
        self.exchange.answer_failed(detail)
        return 0

    cdef int report(self, int status, bytes last) except -1:
        telemetry = self.telemetry
        if telemetry is not None and self.exchange.ctx is not None:
            self.telemetry = None         # it knows this call: no ring that only the garbage collector finds
            telemetry.ended(status, last)
        return 0

    # -- called by the exchange ----------------------------------------------------------------------------------------
    def client_writable(self):
        if self.writable is not None and not self.writable.done():
            self.writable.set_result(None)

    def client_gone(self):
        self.gone = True
        self.report(0, self.last)
        if self.writable is not None and not self.writable.done():
            self.writable.set_exception(ConnectionResetError("client closed the connection"))
        if self.task is not None:
            self.task.cancel()


cdef class HandlerStream:
    """The body of a streamed answer."""

    cdef HandlerCall call
    cdef bint ended

    def __init__(self, HandlerCall call):
        self.call = call

    async def send(self, bytes data):
        """Sends a piece. Waits while a slow client has not read the previous ones."""
        cdef HandlerCall call = self.call
        if call.gone:
            raise ConnectionResetError("client closed the connection")
        if not data:
            return
        if call.telemetry is not None:
            call.last = data
        call.exchange.answer_send(data)
        while call.exchange.congested() and not call.gone:
            call.writable = asyncio.get_running_loop().create_future()
            try:
                await call.writable
            finally:
                call.writable = None

    async def end(self):
        if not self.ended and not self.call.gone:
            self.ended = True
            self.call.report(self.call.status, self.call.last)
            self.call.exchange.answer_end()


cdef class HandlerHeaders:
    """Request header fields of a handler: first value by lower-case name, all in order."""

    cdef list _items
    cdef dict _first

    def __init__(self, items):
        self._items = list(items)

    def get(self, str name not None, default=None):
        cdef str key
        if self._first is None:
            self._first = {}
            for key, value in self._items:
                self._first.setdefault(key.lower(), value)
        return self._first.get(name.lower(), default)

    def items(self):
        return list(self._items)


cdef dict _names = {}                # names that were found to be some, as bytes


cdef bytes encode_name(str name):
    cdef bytes known = _names.get(name)
    if known is None:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a header name")
        known = name.lower().encode("ascii")
        if len(_names) < MAX_NAMES:
            _names[name] = known
    return known


def encode_headers(headers):
    """Pairs of str to pairs of bytes; a value that cannot be a field value raises ValueError (RFC 9110 5.5)."""
    cdef list pairs = []
    cdef bytes field
    for name, value in headers:
        field = value.encode("utf-8")
        if b"\r" in field or b"\n" in field or b"\0" in field:
            raise ValueError(f"header {name} has a line break in its value")
        pairs.append((encode_name(name), field))
    return pairs


cdef bint is_passing(RequestCore request) noexcept:
    """Whether the whole answer is on its way through a filter."""
    return request.filter is not None and request.filter.ending
