from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol, type_check_only

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.link.grpc_call import GrpcCaller, GrpcFailure, UnaryListener
from headgate_engine.steps.asking import AskingStep

@type_check_only
class AskingPolicy(Protocol):
    """Who asks a service."""

    def compose(self, ctx: RequestContext, /) -> tuple[bytes, Any] | Reply | None:
        """Return the message about a request, and a note for conclude().

        None lets the request go on without asking, a Reply ends it.
        """
    def conclude(
        self, ctx: RequestContext, message: bytes | None, failure: GrpcFailure | None, note: Any, /
    ) -> Reply | None:
        """Do what the answer or the failure says. None lets the request go on, a Reply ends it."""

class GrpcQuestion:
    """What a policy asks a service about a request.

    path: the method. callers: the endpoints, of which `order()` gives the indexes in the order in which they are tried:
    one that cannot be reached is skipped. timeout_s: of each endpoint. limit: bytes of the answer.

    Raises ValueError without an endpoint.
    """

    def __init__(
        self,
        path: str,
        callers: tuple[GrpcCaller, ...],
        order: Callable[[], Iterator[int]],
        policy: AskingPolicy,
        *,
        timeout_s: float,
        limit: int,
    ) -> None: ...
    @property
    def path(self) -> str: ...
    @property
    def timeout_s(self) -> float: ...
    @property
    def limit(self) -> int: ...

class ConsultStep(AskingStep):
    """A step that asks a service by a unary gRPC call and suspends the request until the answer has come.

    function: the same as an awaitable, for requests without an exchange (plan.step.settle). body_bytes: as in
    AskingStep.
    """

    def __init__(
        self,
        name: str,
        function: Callable[[RequestContext], Awaitable[Reply | None] | Reply | None],
        question: GrpcQuestion,
        body_bytes: int = -1,
    ) -> None: ...

class Consultation(UnaryListener):
    """A request that waits for an answer."""

    def cancel(self) -> None:
        """The request does not wait any more: the call is given up."""
