"""Calls of a policy with messages in both directions to its service."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from headgate.ir.remote_service import RemoteService
from headgate.policy.environment import Environment
from headgate.policy.remote import UNAVAILABLE, RemoteCaller
from headgate_engine.context.request import RequestContext
from headgate_engine.link.grpc_call import SPANS, GrpcFailure
from headgate_engine.link.grpc_stream import GrpcDuplexCall

if TYPE_CHECKING:
    from headgate_engine.link.spanned import NestedCall

logger = logging.getLogger("headgate.policy")

OK, UNKNOWN = 0, 2
Fields = Sequence[tuple[str, str]]


class StreamUser(Protocol):
    """Who makes a call."""

    def message(self, data: bytes, /) -> None: ...
    def flushed(self, /) -> None: ...
    def writable(self, /) -> None: ...
    def failed(self, failure: GrpcFailure, /) -> None: ...
    def ended(self, /) -> None: ...


def _ignored(_: bytes) -> None:
    """What comes behind the end."""


def _nothing() -> None:
    """The same."""


class ServiceStream:
    """One call, at the first endpoint of the service that can be reached. `places` are the indexes of endpoints.

    `limit`: bytes of a message that is received.
    """

    def __init__(self, service: GrpcStreamService, user: StreamUser, origin: RequestContext, path: str, limit: int):
        self._service = service
        self._user: StreamUser | None = user
        self._origin: RequestContext | None = origin
        self._path = path
        # Endpoints to try behind the first one.
        self._places: Iterator[int] = iter(())
        # What the engine tells goes straight to the user.
        self.message: Callable[[bytes], None] = user.message
        self.flushed: Callable[[], None] = user.flushed
        self.writable: Callable[[], None] = user.writable
        # What makes spans of calls for this request, if it is sampled, and the span of the call.
        self._spans = SPANS.get()
        self._span: NestedCall | None = None
        self.grpc = GrpcDuplexCall(self, limit)

    def open(self) -> None:
        """Begin the call. A failure may be reported at once."""
        service = self._service
        if len(service.callers) == 1 and not service.has_steps:
            self._open(0, ())
            return
        self._places = service.order()
        self._next(GrpcFailure(UNAVAILABLE, "there is no endpoint", True))

    def _next(self, failure: GrpcFailure) -> None:
        index = next(self._places, None)
        if index is None or self._origin is None:
            self._tell_failure(failure)
        elif self._service.has_steps:
            self._service.spawn("processor call", self._prepared(index))
        else:
            self._open(index, ())

    def _open(self, index: int, fields: Fields) -> None:
        caller = self._service.callers[index]
        if self._spans is not None:
            where = caller.pool.endpoint.decode("utf-8", "replace")
            self._span = self._spans.begin(self._service.subtype, where, "POST", self._path)
            fields = self._span.fields(fields)
        self.grpc.open(caller, self._path, fields)

    def end_span(self, code: int, text: str | None = None) -> None:
        """End the span of the call, if it has one and that has not ended. code: of gRPC; text: why it failed."""
        span, self._span = self._span, None
        if span is not None:
            span.end(code, text, grpc=True)

    async def _prepared(self, index: int) -> None:
        """Open the call once the policies of the service have run on it."""
        if self._origin is None:
            return
        try:
            fields = await self._service.fields(self._origin, self._path, index)
        except GrpcFailure as failure:
            self._next(failure)
            return
        except Exception as error:  # task boundary: the call fails, as if the service did
            logger.exception("a policy of a remote service failed")
            text = f"a policy of the service failed: {type(error).__name__}"
            self._tell_failure(GrpcFailure(UNAVAILABLE, text, True))
            return
        if self._origin is not None:
            self._open(index, fields)

    def close(self) -> None:
        """End the call. Nothing more is reported."""
        self._origin = self._spans = None
        # The user holds the call: together they would wait for the garbage collector.
        self._user = None
        self.message, self.flushed, self.writable = _ignored, _nothing, _nothing
        self.end_span(OK)
        self.grpc.close()

    def _tell_failure(self, failure: GrpcFailure) -> None:
        if self._user is not None:
            self._user.failed(failure)

    # -- StreamListener, beside message(), flushed() and writable() ----------------------------------------------------
    def failed(self, failure: GrpcFailure) -> None:
        self.end_span(failure.code, str(failure))
        if failure.unsent and self._origin is not None:
            self._next(failure)
        else:
            self._tell_failure(failure)

    def ended(self) -> None:
        self.end_span(OK)
        if self._user is not None:
            self._user.ended()


class GrpcStreamService(RemoteCaller):
    """gRPC calls with messages in both directions to a service."""

    def __init__(self, service: RemoteService, env: Environment, subtype: str) -> None:
        super().__init__(service, env, subtype)
        assert env.grpc is not None
        self.callers = [env.grpc(place, subtype) for place in self._places]
        self.spawn: Callable[..., object] = env.spawn
        self.has_steps = bool(self._steps)

    def order(self) -> Iterator[int]:
        """Return the endpoints in the order in which they are tried."""
        return self._order()

    async def fields(self, origin: RequestContext, path: str, index: int) -> Fields:
        """Return the metadata that the policies of the service add to a call. Raises GrpcFailure where one refuses."""
        return await self._metadata(origin, path, index, b"")

    def call(self, origin: RequestContext, user: StreamUser, path: str, limit: int) -> ServiceStream:
        """Return a call that has not been opened. `limit`: bytes of a message that is received."""
        return ServiceStream(self, user, origin, path, limit)
